"""Finds where a program reads numbers that may not be 0: those by which it divides, and those whose logarithm it takes,
as in `mse = loss.item()` and then `10 * math.log10(1 / mse)`."""

import ast
import collections
import dis
import functools
import itertools
import linecache

import headroom_lines

DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
LOGARITHMS = {"log", "log2", "log10"}
CALCULATES = {"abs", "float", "int", "max", "mean", "min", "pow", "round", "sqrt", "sum", *LOGARITHMS}
TELLS = {"add_scalar", "critical", "debug", "error", "format", "info", "isnan", "log_dict", "print", "repr",
         "set_postfix", "str", "update", "warning", "write"}  # functions that report a number and do not use it as a size
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Scope:
    """A function that is not inside of another one, or what a file has outside of functions. `sources`: expressions on
    which a number that may not be 0 depends, and `names`: of what they are calculated. `sizes`: names of what may be a
    size or an index, because it stands in brackets or is given to a function of which nothing is known."""

    def __init__(self, function, nodes):
        arguments = getattr(function, "args", None)
        parameters = arguments.posonlyargs + arguments.args if arguments else []
        self.parameters = [each.arg for each in parameters if each.arg != "self"]
        self.nodes = nodes
        self.results = [function.body] if isinstance(function, ast.Lambda) else [
            node.value for node in nodes if isinstance(node, ast.Return) and node.value]
        self.sources, self.names, self.sizes = [], set(), set()
        for node in nodes:
            self.add(sources_in(node))

    def add(self, sources):
        """Returns whether there was a new one."""
        new = [source for source in sources if source not in self.sources]
        self.sources += new
        self.names.update(name for source in new for name in names_in(source))
        return bool(new)


def sources_in(node):
    """Returns the operands of this node that may not be 0."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, DIVISIONS):
        is_text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)  # as in "%d steps" % number
        return [] if is_text else [node.right]
    if isinstance(node, ast.AugAssign) and isinstance(node.op, DIVISIONS):
        return [node.value]
    return [node] if isinstance(node, ast.Call) and is_logarithm(node.func) else []  # which may read its operand itself


def is_logarithm(function):
    """Whether this is the logarithm of a number. Loggers have methods of the same name."""
    return name_of(function) in LOGARITHMS and (
        isinstance(function, ast.Name) or name_of(function.value) == "math")


def names_in(node):
    """Yields the names of variables, and of attributes as ".name", from which an expression calculates its value."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield "." + node.attr
    elif isinstance(node, ast.Subscript):
        yield from names_in(node.value)
    elif not isinstance(node, ast.Call):
        for child in ast.iter_child_nodes(node):
            yield from names_in(child)
    elif name_of(node.func) in CALCULATES:
        of_method = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        for given in node.args + of_method:
            yield from names_in(given)


def name_of(node):
    return getattr(node, "id", None) or getattr(node, "attr", None)


def scopes_of(tree):
    """Returns (what is outside of functions, {name: the functions of that name})."""
    outside, functions, pending = [], collections.defaultdict(list), [tree]
    while pending:
        node = pending.pop()
        named = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) else node
        if isinstance(named, FUNCTIONS):
            name = getattr(named, "name", None) or name_of(getattr(node, "targets", [node])[0])
            functions[name].append(Scope(named, list(ast.walk(named))))
        else:
            outside.append(node)
            pending.extend(ast.iter_child_nodes(node))
    return Scope(tree, outside), functions


def given_to(scope, functions, wanted, attributes):
    """Returns the expressions that a scope assigns to names of which it wants the values, or gives to functions of the
    same file as parameters of such names. `wanted` returns those names of a scope; `attributes` are wanted everywhere.
    """
    found, names = [], wanted(scope) | attributes
    for node in scope.nodes:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            targets = getattr(node, "targets", None) or [node.target]
            found += [node.value for target in targets if not names.isdisjoint(names_in(target))]
        for called in called_by(node, functions):
            found += [given for name, given in zip(called.parameters, node.args) if name in wanted(called)]
    return found


def add_sizes(scope, functions, attributes):
    """Adds names of what a scope uses as a size. Returns whether there were new ones."""
    found = given_to(scope, functions, lambda scope: scope.sizes, attributes)
    for node in scope.nodes:
        if isinstance(node, ast.Subscript):
            found.append(node.slice)
        elif isinstance(node, ast.Call) and name_of(node.func) not in CALCULATES | TELLS \
                and not called_by(node, functions):
            found += node.args + [keyword.value for keyword in node.keywords]
    before = len(scope.sizes)
    scope.sizes.update(name for each in found for name in names_in(each))
    return len(scope.sizes) > before


def add_sources(scope, functions, wanted, attributes):
    """Adds the expressions from which sources of a scope get their values: assigned ones, arguments of functions of the
    same file, and their results. Returns whether there were any."""
    found = given_to(scope, functions, wanted, attributes)
    given_back = [called.add(called.results) for source in scope.sources for node in ast.walk(source)
                  for called in called_by(node, functions)]
    return scope.add(found) or any(given_back)


def called_by(node, functions):
    return functions.get(name_of(node.func), []) if isinstance(node, ast.Call) else []


def places_of(sources):
    """Returns where the expressions begin and end that call something, as reading does."""
    return {((source.lineno, source.col_offset), (source.end_lineno, source.end_col_offset)) for source in sources
            if any(isinstance(node, ast.Call) for node in ast.walk(source))}


def until_nothing_new(scopes, kind, add):
    """Calls add(scope, attributes) for all scopes until there is nothing to add. `attributes`: what the scopes' sets of
    names of this kind have of attributes, which belong to no scope."""
    found = True
    while found:
        attributes = {name for scope in scopes for name in getattr(scope, kind) if name.startswith(".")}
        found = any([add(scope, attributes) for scope in scopes])
    return attributes


@functools.cache
def places_in(filename):
    """Returns (the places in a file at which such numbers are calculated, those of them at which a whole number is no
    size), or None for a framework and where there is no file."""
    lines = linecache.getlines(filename)
    if not lines or not headroom_lines.is_users(filename) and not headroom_lines.is_librarys(filename):
        return None
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None
    outside, functions = scopes_of(tree)
    scopes = [outside, *itertools.chain.from_iterable(functions.values())]
    sizes = until_nothing_new(scopes, "sizes", lambda scope, attributes: add_sizes(scope, functions, attributes))
    until_nothing_new(scopes, "names", lambda scope, attributes: add_sources(
        scope, functions, lambda of: of.names - of.sizes, attributes - sizes))
    of_no_sizes = places_of(source for scope in scopes for source in scope.sources)
    until_nothing_new(scopes, "names", lambda scope, attributes: add_sources(
        scope, functions, lambda of: of.names, attributes))
    return places_of(source for scope in scopes for source in scope.sources), of_no_sizes


def divides_next(code, at):
    """Whether the instruction after that at the offset `at` divides by the result."""
    following = next((one for one in dis.get_instructions(code) if one.offset > at), None)
    divides = {"BINARY_TRUE_DIVIDE", "BINARY_FLOOR_DIVIDE", "BINARY_MODULO", "/", "//", "%"}  # the names of Python 3.10
    return following is not None and not divides.isdisjoint((following.opname, following.argrepr.rstrip("=")))


@functools.lru_cache(maxsize=None)
def is_divisor(code, at, line, is_whole):
    """Whether the number that the instruction at the offset `at` reads may not be 0. A whole number may be 0 where it
    is used as a size, since it may be the number of what a mask selects."""
    places = places_in(code.co_filename)
    if places is None:
        return divides_next(code, at)
    column = None  # which Python tells since 3.11
    if hasattr(code, "co_positions"):
        _, _, column, _ = next(itertools.islice(code.co_positions(), at // 2, None))
    return any(begin[0] <= line <= end[0] and (column is None or begin <= (line, column) < end)
               for begin, end in places[is_whole])
