"""Notes, inside the user's program, what JAX's allocator says it held. JAX has no optimizer of its own,
so that its steps are not counted."""

import headroom_notes


def peaks():
    """The counters of each device, once JAX has started to use devices."""
    import jax
    from jax._src import xla_bridge

    if not xla_bridge.backends_are_initialized():
        return []  # to ask would take the card
    result = []
    for device in jax.local_devices():
        stats = (device.memory_stats() if device.platform == "gpu" else None) or {}
        if "peak_bytes_in_use" in stats:
            use = {"device": device.id, "peak_allocated": stats["peak_bytes_in_use"]}
            if "peak_pool_bytes" in stats:
                use["peak_reserved"] = stats["peak_pool_bytes"]
            result.append(use)
    return result


def finish():
    """JAX works while the program goes on, and an error of what nobody waited for is told to nobody."""
    import jax
    from jax._src import xla_bridge

    if xla_bridge.backends_are_initialized():
        jax.block_until_ready(jax.live_arrays())


def show_gpu(hardware_utils):
    """JAX asks for a GPU only where it finds a device file of NVIDIA's driver."""
    hardware_utils.has_visible_nvidia_gpu = lambda: True


def install(jax):
    """Called once JAX has been imported."""
    differences = [
        "XLA measures nothing and uses no CUDA graphs",
        "steps are not counted: the program runs to its end",
    ]
    headroom_notes.add(f"JAX {jax.__version__}", peaks, differences, finish=finish)
