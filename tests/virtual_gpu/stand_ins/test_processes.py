"""Which cards a program sees, and processes that share one."""

import subprocess

from conftest import MIB, RUNTIME


COUNT = RUNTIME + """
count = ctypes.c_int()
cuda.cudaGetDeviceCount(ctypes.byref(count))
print("devices:", count.value)
"""


def test_the_program_sees_the_devices_that_its_own_list_names(gpu):
    for listed, devices in [("", 0), ("-1", 0), ("0", 1), ("0,1", 2), ("7", 1), ("GPU-8f2c", 1)]:
        setting = f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '{listed}'\n"
        assert f"devices: {devices}\n" in gpu("l4", "--gpus", "2", program=setting + COUNT).output


def test_a_list_in_the_users_shell_is_about_other_gpus(gpu):
    answer = gpu("l4", "--gpus", "2", program=COUNT, environment={"CUDA_VISIBLE_DEVICES": ""})
    assert "devices: 2\n" in answer.output


def test_memory_is_charged_to_the_card_that_the_list_names(gpu):
    setting = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\n"
    answer = gpu("l4", "--gpus", "2", program=setting + RUNTIME + "allocate(64 << 20)")
    assert [(d["device"], d["peak_bytes"]) for d in answer.figures["devices"]] == [(1, 64 * MIB)]


def test_processes_that_share_a_card_have_what_others_left(gpu):
    answer = gpu("l4", "--memory", "64MiB", program=RUNTIME + """
import subprocess, sys
if len(sys.argv) == 1:
    assert allocate(48 << 20)[0] == 0
    subprocess.run([sys.executable, __file__, "second"], check=True)
else:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    assert (free.value, total.value) == (16 << 20, 64 << 20)
    assert allocate(18 << 20)[0] == 2, "cudaErrorMemoryAllocation"
    assert allocate(14 << 20)[0] == 0
""")
    assert answer.status == 0, answer.errors
    [device] = answer.figures["devices"]
    assert (device["peak_bytes"], device["processes"]) == (62 * MIB, 2)
    assert "at the peak of 2 processes" in answer.output


def test_processes_that_never_ran_at_once_are_not_added_up(gpu):
    answer = gpu("l4", "--memory", "64MiB", program=RUNTIME + """
import os, subprocess, sys
if len(sys.argv) == 1:
    for size in (48, 60, 30):
        subprocess.run([sys.executable, __file__, str(size)], check=True)
    ended = subprocess.Popen([sys.executable, __file__, "20"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # its entry stays until the parent asks
    assert allocate(64 << 20)[0] == 0
else:
    assert allocate(int(sys.argv[1]) << 20)[0] == 0
""")
    assert answer.status == 0, answer.errors
    [device] = answer.figures["devices"]
    assert (device["peak_bytes"], device["processes"]) == (64 * MIB, 1)


def test_processes_that_take_memory_at_once_never_get_more_than_there_is(gpu):
    answer = gpu("l4", "--memory", "512MiB", program=RUNTIME + """
import os, time

def wait_for_all(name):
    with open(name, "a") as file:
        file.write("x")
    while os.path.getsize(name) < 4:
        time.sleep(0.001)

children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        wait_for_all("begun")
        while allocate(2 << 20)[0] == 0:
            pass
        wait_for_all("full")
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["devices"][0]["peak_bytes"] == 512 * MIB


def test_each_process_on_a_card_takes_a_context(gpu):
    answer = gpu("l4", "--memory", "64MiB", "--context", "10MiB", program=RUNTIME + """
import subprocess, sys
if len(sys.argv) == 1:
    assert allocate(20 << 20)[0] == 0
    subprocess.run([sys.executable, __file__, "second"], check=True)
else:
    assert allocate(26 << 20)[0] == 2, "cudaErrorMemoryAllocation"
    assert allocate(24 << 20)[0] == 0
""")
    assert answer.status == 0, answer.errors


def test_a_fork_is_counted_apart_from_its_parent(gpu):
    answer = gpu("l4", program=RUNTIME + """
import os
allocate(2 << 20)
if os.fork() == 0:
    os._exit(0)
os.wait()
allocate(2 << 20)
""")
    assert answer.figures["peak_bytes"] == 4 * MIB


def test_a_thread_that_outlives_the_program_is_told_that_the_driver_shuts_down(gpu, tmp_path):
    """PyTorch's thread that watches NCCL looks for these words, and else ends the process by a signal."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int (*get)(int*), device;
static const char* (*words)(int);
static void* ask(void* nothing) { printf("a thread: %s\\n", words(get(&device))); return nothing; }
__attribute__((destructor)) static void end(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, ask, NULL);
  pthread_join(thread, NULL);
  printf("the program: %s\\n", words(get(&device)));
}
int main(void) {
  void* runtime = dlopen("libcudart.so.12", RTLD_NOW);
  get = (int (*)(int*))dlsym(runtime, "cudaGetDevice");
  words = (const char* (*)(int))dlsym(runtime, "cudaGetErrorString");
  return get(&device);
}
""")
    subprocess.run(["cc", source, "-o", program, "-ldl", "-pthread"], check=True)
    answer = gpu("l4", program=f"import os\nos.execv({str(program)!r}, ['program'])")
    assert "a thread: driver shutting down\nthe program: no error\n" in answer.output
