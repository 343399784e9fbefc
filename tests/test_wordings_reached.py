"""Wordings of one rule that no keyword of it let through before: each is found by itself."""

from __future__ import annotations

import pytest
from scenes import matcher

from logtriage.rulebank.rule import Role


@pytest.mark.parametrize(
    ("line", "failure_type"),
    [
        ("XlaRuntimeError: FAILED_PRECONDITION: No visible CUDA devices.", "gpu.unavailable"),
        ("torch.AcceleratorError: cudaErrorDeviceUnavailable", "gpu.unavailable"),
        ("AssertionError: PyTorch was not compiled with NCCL support", "gpu.unavailable"),
        ("pynvml.NVMLError_GpuIsLost", "gpu.fell_off_bus"),
        ("NVRM: GPU lost from the bus", "gpu.fell_off_bus"),
        ("CUDA driver error: CUDA_ERROR_INVALID_IMAGE", "cuda.version_mismatch"),
        ("cudaErrorSystemDriverMismatch", "cuda.version_mismatch"),
        ("deep_gemm/runtime.hpp:141 'CUDA_ERROR_INVALID_VALUE'", "cuda.launch_failure"),
        ("what(): cudaErrorInvalidPc", "cuda.launch_failure"),
        ("CUDA_ERROR_INVALID_ADDRESS_SPACE", "cuda.illegal_memory_access"),
        ("RuntimeError: miopenStatusAllocFailed", "cuda.out_of_memory"),
        ("what():  rmm::bad_alloc", "cuda.out_of_memory"),
        ("Cannot re-initialize XPU in forked subprocess", "code.runtime"),
        ("RuntimeError: torch.distributed watchdog hang detected", "collective.timeout"),
        ("PML ucx cannot be selected", "collective.remote_error"),
        ("Unhealthy task: /job:jax_worker/replica:0/task:2", "collective.remote_error"),
        ("bond0: now running without any active interface!", "network.infiniband"),
        ("System is powering down.", "host.node_lost"),
        ("x.service: Failed with result 'oom-kill'.", "host.out_of_memory"),
        ("free(): double free detected in tcache 2", "process.native_crash"),
        ("raise ray.exceptions.OutOfMemoryError", "host.out_of_memory"),
        ("job killed on DOWN node cn-4: Killing JobId=71 on DOWN node cn-4", "host.node_lost"),
        ("Job was preempted", "scheduler.preempted"),
        ("JobState=DEADLINE Reason=None", "scheduler.time_limit"),
        ("=>> PBS: job killed: cput 901 exceeded limit 900", "scheduler.time_limit"),
        ("FATAL: while extracting /sif/train.sif: root filesystem extraction failed", "scheduler.launch"),
        ("Name node is in safe mode.", "storage.filesystem"),
        ("botocore.exceptions.IncompleteReadError: 104 read, but 900 expected", "storage.object_store"),
        ("boto3.exceptions.S3UploadFailedError: Failed to upload a.pt to b/c", "storage.object_store"),
        ("msgpack.exceptions.OutOfData", "checkpoint.corrupt"),
        ("ann@cn-4: Permission denied (password).", "scheduler.launch"),
    ],
)
def test_a_wording_is_found_by_itself(line: str, failure_type: str) -> None:
    found = {hit.rule.failure_type for hit in matcher().match(line) if hit.rule.role is not Role.CONTEXT}
    assert failure_type in found
