"""Records, inside the user's program, what JAX's allocator reports. JAX has no optimizer of its own, so its
steps are not counted."""

import headroom_notes


def peaks():
    """Returns the counters of each device, once JAX has started to use devices."""
    import jax
    from jax._src import xla_bridge

    if not xla_bridge.backends_are_initialized():
        return []  # asking would start the device
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
    """Waits for JAX's asynchronous work, because an error in work that nobody waits for is never raised."""
    import jax
    from jax._src import xla_bridge

    if xla_bridge.backends_are_initialized():
        jax.block_until_ready(jax.live_arrays())


def show_gpu(hardware_utils):
    """Makes JAX look for a GPU although there is no device file of NVIDIA's driver."""
    hardware_utils.has_visible_nvidia_gpu = lambda: True


def install(jax):
    """Called after JAX has been imported."""
    differences = [
        "XLA measures nothing and uses no CUDA graphs",
        "steps are not counted: the program runs to its end",
    ]
    headroom_notes.add(f"JAX {jax.__version__}", peaks, differences, finish=finish)
