"""What every record of a result says."""

FIELDS = (
    # inputs
    *("fingerprint", "spec", "code_digest", "data_digest", "seed", "commit", "dirty", "versions"),
    # machine and precision
    *("host", "platform", "device", "device_name", "driver", "cuda", "cpu", "cores", "threads"),
    *("precision", "deterministic_algorithms", "bit_equality"),
    # time and memory
    *("started", "finished", "seconds", "cpu_seconds", "gpu_seconds", "resumed"),
    *("peak_memory_bytes", "peak_gpu_memory_bytes"),
)
