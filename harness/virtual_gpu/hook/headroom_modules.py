"""Records which torch.nn.Module the program was in at each moment, and which module a parameter belongs to.
It only records: the program's objects are not changed, and no tensor is kept alive."""

import array
import bisect
import functools
import re
import sys
import threading
import time
import warnings
import weakref

import headroom_notes

MOST_SEARCHES = 20  # limit on searches, which find modules that are made while the program runs
MOST_MOMENTS = 4_000_000  # more lose their beginning, as the history of allocations does
# The attributes in which torch.compile, FSDP, checkpointing and Lightning Fabric keep a module of the program, and Keras
# the weights of a layer.
WRAPPED = re.compile(
    r"\b(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module|_torch_params)(\.|$)")


def is_of_keras(module):
    return any(kind.__module__ == "keras.src.layers.layer" for kind in type(module).__mro__)


def builds_model(inputs):
    """Whether layers of Keras are being called to build a model, which allocates nothing. Each such call may be the
    first one of a layer, and searches for all of them would take long."""
    first = inputs[0] if inputs else None
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return type(first).__name__ == "KerasTensor" or getattr(first, "is_meta", False)


def outermost_first(module):
    """Returns a key that sorts models of Keras before the layers whose weights they hold as well."""
    return (-sum(1 for _ in module.parameters()), not hasattr(module, "layers")) if is_of_keras(module) else (0, False)


class Modules:
    """From `moments[i]` (µs since 1970) on, the innermost module is `names[i]`, "" for none."""

    def __init__(self):
        self.moments, self.names = array.array("q"), []
        self.paths = {}  # id of a module → (reference, path)
        self.owners = {}  # id of a parameter or buffer → (reference, path of its module)
        self.roots = {}  # id of a module that no other contains → (reference, name, whether its paths have that name)
        self.searches = 0
        self.threads = threading.local()

    def search(self):
        """Names all live modules by their path from a module that no other contains."""
        import torch

        self.searches += 1
        alive = [module for module in headroom_notes.live_objects(torch.nn.Module)
                 if "_modules" in module.__dict__]  # else its constructor has yet to call that of its base class
        contained = {id(child) for module in alive for child in module._modules.values()}
        roots = [module for module in alive if id(module) not in contained]
        several = sum(any(True for _ in root.parameters()) for root in roots) > 1
        for root in sorted(roots, key=outermost_first):
            name, is_in_paths = self.name_of(root, several)
            for path, module in root.named_modules():
                path = WRAPPED.sub("", path).rstrip(".")
                if is_in_paths or not path or path[0].isdigit():
                    path = f"{name}.{path}".rstrip(".")
                known = self.path_of(module)
                if known is None:
                    self.paths[id(module)] = (weakref.ref(module), path)
                else:
                    path = known
                for tensor in (*module._parameters.values(), *module._buffers.values()):
                    if tensor is not None:
                        self.owners[id(tensor)] = (weakref.ref(tensor), path)

    def name_of(self, root, several):
        """Returns the name of the script's variable that holds the module, or else the name of its class, and of a
        layer of Keras its own name. The second module of that name gets " 2" appended, and so on. Also returns whether
        there were several models when it got its name."""
        reference, *named = self.roots.get(id(root), (None,))
        if reference is not None and reference() is root:
            return named
        variables = list(vars(sys.modules["__main__"]).items())
        first = root.name if is_of_keras(root) else next(
            (name for name, value in variables if value is root), type(root).__name__)
        taken = {name for reference, name, _ in self.roots.values() if reference() is not None}
        name, number = first, 1
        while name in taken:
            number += 1
            name = f"{first} {number}"
        self.roots[id(root)] = (weakref.ref(root), name, several)
        return name, several

    def path_of(self, module):
        reference, path = self.paths.get(id(module), (None, None))
        return path if reference is not None and reference() is module else None

    def owner_of(self, tensor):
        """Returns the path of the module of a parameter or buffer, "" if it has none."""
        for _ in range(2):
            reference, path = self.owners.get(id(tensor), (None, ""))
            if reference is not None and reference() is tensor:
                return path
            if self.searches >= MOST_SEARCHES:
                break
            self.search()
        return ""

    def stack(self):
        if not hasattr(self.threads, "stack"):
            self.threads.stack = []
        return self.threads.stack

    def note(self, path):
        if len(self.moments) >= MOST_MOMENTS:
            del self.moments[:MOST_MOMENTS // 4], self.names[:MOST_MOMENTS // 4]
        self.moments.append(time.time_ns() // 1000)
        self.names.append(path)

    def enter(self, module):
        path = self.path_of(module)
        if path is None and self.searches < MOST_SEARCHES:
            self.search()
            path = self.path_of(module)
        stack = self.stack()
        for depth, (entered, _) in enumerate(stack):
            if entered == id(module):  # an exception ended its previous call
                del stack[depth:]
                break
        stack.append((id(module), path or type(module).__name__))
        self.note(stack[-1][1])

    def leave(self, module):
        stack = self.stack()
        while stack and stack.pop()[0] != id(module):
            pass
        self.note(stack[-1][1] if stack else "")

    def at(self, moment):
        index = bisect.bisect_right(self.moments, moment) - 1
        # Within one microsecond, allocations of a module come before the moment at which it is left.
        while index > 0 and self.moments[index] == moment and not self.names[index]:
            index -= 1
        return self.names[index] if index >= 0 else ""


def watch():
    """Starts recording. Nothing is recorded under torch.compile, which does not call modules separately: the
    compiler sees hooks that do nothing."""
    import torch
    from torch.compiler import is_compiling
    from torch.nn.modules.module import (
        register_module_forward_hook,
        register_module_forward_pre_hook,
    )

    modules = Modules()
    warnings.filterwarnings("ignore", message="Using `torch.compile.*global hooks")

    def before(module, inputs):
        if not is_compiling() and not (is_of_keras(module) and builds_model(inputs)):
            modules.enter(module)

    def after(module, inputs, outputs):
        if not is_compiling() and not (is_of_keras(module) and builds_model(inputs)):
            modules.leave(module)

    def compile_and_note(module, *arguments, **options):
        compile_it(module, *arguments, **options)
        call = module._compiled_call_impl  # in place of the call that runs the hooks

        @functools.wraps(call)
        def call_and_note(*inputs, **named):
            if is_compiling():
                return call(*inputs, **named)
            modules.enter(module)
            try:
                return call(*inputs, **named)
            finally:
                modules.leave(module)

        module._compiled_call_impl = call_and_note

    compile_it = torch.nn.Module.compile
    torch.nn.Module.compile = functools.wraps(compile_it)(compile_and_note)
    register_module_forward_pre_hook(before)
    register_module_forward_hook(after, always_call=True)  # checkpointing ends what it repeats with an exception
    return modules
