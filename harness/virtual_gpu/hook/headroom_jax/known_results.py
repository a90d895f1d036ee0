"""Lets the host calculate, beside each function that JAX compiles, the results that depend only on few numbers that it
knows, such as counters of steps and the number of what a mask selects. It writes them to the memory of the virtual GPU.
"""

import weakref

import jax
from headroom_jax.known_values import KNOWN, UNKNOWN, can_be_known, kind_of, remember, remember_copies, value_of
from headroom_jax.slices import Slice, working
from headroom_known import comparisons, tries
from jax._src import dispatch, pjit

slices = weakref.WeakKeyDictionary()  # function -> {(name, what is known of its operands): Slice, or None}


def slice_of(closed, name, kinds):
    """Returns the slice of a function for operands of which this is known, or None where nothing can be known."""
    known = slices.setdefault(closed, {})
    if kinds not in known:
        try:
            made = Slice(closed, name, kinds)
        except Exception as error:  # of whatever type, the results are then not known
            tries.failed(error)
            made = None
        known[kinds] = made if made is not None and made.tells else None
    return known[kinds]


def may_tell(closed, name):
    """Whether a function has results that are known if the host knows the operands that it may know."""
    kinds = [KNOWN if can_be_known(aval) else UNKNOWN for aval in closed.in_avals]
    flags = [True if kind is UNKNOWN and getattr(aval, "dtype", None) == bool else kind
             for kind, aval in zip(kinds, closed.in_avals)]
    return slice_of(closed, name, tuple(flags)) is not None


def known_results(closed, name, kinds, values):
    """Returns what is known of the results of a function, or None."""
    found = slice_of(closed, name, kinds)
    try:
        results = found and found.values([value for value, kind in zip(values, kinds) if kind is KNOWN])
        tries.succeeded |= found is not None and any(result is KNOWN for result in found.results)
    except Exception as error:  # such as that a processor has no such operation
        tries.failed(error)
        found = slices[closed][kinds] = None
    if found and found.compares:
        comparisons.note()
    return results if found else None


def follow():
    """Lets the host work beside each function that JAX compiles."""
    run = pjit._pjit_call_impl_python
    fast_path = pjit._get_fastpath_data
    executables = weakref.WeakSet()  # which Python shall call

    def run_and_follow(*operands, jaxpr, name, **options):
        if working.active:
            return run(*operands, jaxpr=jaxpr, name=name, **options)
        working.active = True
        try:
            with jax.transfer_guard("allow"):
                values = list(map(value_of, operands, jaxpr.in_avals))  # the function may write in their place
            ran = run(*operands, jaxpr=jaxpr, name=name, **options)
            with jax.transfer_guard("allow"):
                results = known_results(jaxpr, name, tuple(map(kind_of, operands, values)), values)
                for output, value in zip(ran[0], results or ()):
                    if value is not UNKNOWN:
                        remember(output, value)
            if results or may_tell(jaxpr, name):
                executables.add(ran[1])
            return ran
        finally:
            working.active = False

    pjit._pjit_call_impl_python = run_and_follow
    pjit._get_fastpath_data = lambda executable, *rest: (
        None if executable in executables else fast_path(executable, *rest))
    dispatch._batched_device_put_impl = remember_copies(dispatch._batched_device_put_impl)


def use_processor():
    """Lets JAX use the processor, too, where the program asks for nothing but a GPU."""
    platforms = jax.config.jax_platforms
    if platforms and "cpu" not in platforms.split(","):
        jax.config.update("jax_platforms", platforms + ",cpu")
