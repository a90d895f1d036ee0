"""How a PyTorch program ends that `--until-step` has stopped, and what the answer makes of it."""

ENDS_BADLY_ONCE_STOPPED = """
import os, sys, torch
other = os.fork() if sys.argv[1:] == ["beside another"] else None
if other == 0:
    torch.ones(1, device="cuda")
    os.abort()
layer = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(layer.parameters())
try:
    while True:
        layer(torch.ones(8, 64, device="cuda")).sum().backward()
        optimizer.step()
except SystemExit as error:
    print(error)
    sys.exit(3)
"""


def test_how_a_program_ends_once_it_was_stopped_is_told_and_changes_no_verdict(gpu, pytorch):
    answer = gpu("rtx4090", "--until-step", "2", program=ENDS_BADLY_ONCE_STOPPED, python=pytorch)
    assert answer.status == 0 and answer.figures["exit_status"] == 3
    assert "Headroom stops the program here, after 2 training steps (--until-step)" in answer.output
    assert "FITS" in answer.output
    assert "The command ended with status 3 after --until-step had stopped the program" in answer.output


def test_a_crash_beside_a_program_that_was_stopped_is_a_failure(gpu, pytorch):
    answer = gpu("rtx4090", "--until-step", "2", program=ENDS_BADLY_ONCE_STOPPED, python=pytorch,
                 arguments=["beside another"])
    assert answer.status == 3
    assert "FAILED: the program ended with status 3 after 2 optimizer steps" in answer.output


def test_a_program_that_takes_the_end_of_its_training_thread_for_a_failure_fits(gpu, pytorch):
    """Ray kills the process then, and ends with an error."""
    answer = gpu("rtx4090", "--until-step", "3", python=pytorch, program="""
import os, signal, threading, torch
def train():
    try:
        take_steps()
    except BaseException as error:
        print("told:", error, flush=True)
def take_steps():
    model = torch.nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(9):
        model(torch.randn(8, 1024, device="cuda")).sum().backward()
        optimizer.step()
thread = threading.Thread(target=train)
thread.start()
thread.join()
os.kill(os.getpid(), signal.SIGKILL)
""")
    assert answer.status == 0
    assert "told: Headroom stops the program here, after 3 training steps" in answer.output
    assert "\nFITS" in answer.output and "3 optimizer steps" in answer.output
