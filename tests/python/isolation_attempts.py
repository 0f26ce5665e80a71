"""What a hostile model tries, as Python that runs in a worker: refused if an exception for want of permission comes.

Each is a snippet that may use the names of `place`: SERVER, HOME, NEIGHBOUR (folders), PID (of the server), OTHER (of another
model's worker), PORT (of the server), SOCKET and NAME (of listening Unix sockets), MEMORY (a file of named memory), SIGNAL (0
where it would be allowed), and the functions of PRELUDE.
"""

import dataclasses

# What runs before each attempt.
PRELUDE = '''
import ctypes, os, signal, subprocess, sys, tempfile
_libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if _libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def child(code):
    """As a program of its own; refused if that was."""
    code = "import os, signal, socket, sys\\n" + code
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if "PermissionError" in run.stderr:
        raise PermissionError(run.stderr)
    assert run.returncode == 0, run.stderr
def asks(service):
    """Of the server: refused by its policy, or not."""
    try:
        service()
    except Exception as error:
        if "may not load or unload models" in str(error):
            raise PermissionError(str(error))
def reaches_kernel(number, *arguments):
    """A call without sense: refused, or found to be without sense."""
    try:
        call(number, *arguments)
    except PermissionError:
        raise
    except OSError:
        pass
'''


@dataclasses.dataclass(frozen=True)
class Attempt:
    name: str
    code: str
    # Refused at level `standard` already.
    at_standard: bool = True
    # What some machines refuse to everyone: then there is nothing to see.
    may_be_refused_anyway: bool = False


def at_strict(name, code):
    return Attempt(name, code, at_standard=False)


def of_root(name, code):
    return Attempt(name, code, may_be_refused_anyway=True)


FILES = [
    Attempt("write_into_the_servers_folder", "open(SERVER + '/written', 'w').close()"),
    Attempt("write_into_home", "open(HOME + '/.bashrc', 'a').close()"),
    Attempt("write_another_models_code", "open(NEIGHBOUR + '/1/model.py', 'a').close()"),
    Attempt("add_a_version_of_another_model", "os.makedirs(NEIGHBOUR + '/2', exist_ok=True)"),
    Attempt("truncate_another_models_file", "os.truncate(NEIGHBOUR + '/1/spare', 0)"),
    Attempt("remove_another_models_file", "os.remove(NEIGHBOUR + '/1/spare'); open(NEIGHBOUR + '/1/spare', 'w').close()"),
    Attempt("add_a_model", "os.makedirs(NEIGHBOUR + '/../added', exist_ok=True)"),
    of_root("write_into_etc", "os.close(os.open('/etc', os.O_TMPFILE | os.O_WRONLY))"),
    Attempt("read_the_policy", "open(SERVER + '/policy.toml').read()"),
    Attempt("read_credentials_at_home", "open(HOME + '/.aws/credentials').read()"),
    Attempt("read_another_models_file", "open(NEIGHBOUR + '/1/spare').read()"),
    Attempt("list_the_servers_folder", "os.listdir(SERVER)"),
    of_root("read_passwords", "open('/etc/shadow').read()"),
    Attempt(
        "read_through_a_link",
        "link = tempfile.mktemp(); os.symlink(SERVER + '/policy.toml', link); open(link).read()",
    ),
    Attempt(
        "read_through_the_server",
        "open('/proc/%d/root%s/policy.toml' % (PID, SERVER)).read()",
    ),
    Attempt("write_with_a_child", "child('open(%r, \"w\").close()' % (SERVER + '/written'))"),
    Attempt("read_with_a_shell", "out = subprocess.run('cat %s/policy.toml' % SERVER, shell=True, capture_output=True)\n"
            "if b'ermission denied' in out.stderr: raise PermissionError(out.stderr)\nassert out.returncode == 0"),
    Attempt(
        "read_in_a_fork",
        "pid = os.fork()\nif pid == 0:\n    try: open(SERVER + '/policy.toml').read()\n    except PermissionError: os._exit(7)\n"
        "    os._exit(0)\nif os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7: raise PermissionError",
    ),
    at_strict("write_the_own_code", "open(__file__, 'a').close()"),
    Attempt("write_the_own_configuration", "open(os.path.dirname(__file__) + '/../config.pbtxt', 'a').close()"),
    at_strict("lock_others_out_of_a_file", "os.chmod(NEIGHBOUR + '/1/spare', 0o644)"),
    at_strict("make_a_file_look_newer", "os.utime(NEIGHBOUR + '/1/spare')"),
    at_strict("mark_a_file", "reaches_kernel(188, b'/nowhere', b'user.x', b'', 0, 0)"),
    at_strict("remove_named_memory_of_others", "os.remove(MEMORY); open(MEMORY, 'w').close()"),
]

PROCESSES = [
    Attempt("read_the_servers_variables", "open('/proc/%d/environ' % PID).read()"),
    Attempt("read_the_servers_memory", "open('/proc/%d/mem' % PID, 'rb')"),
    Attempt("open_the_servers_descriptors", "os.open('/proc/%d/fd/0' % PID, os.O_RDONLY)"),
    Attempt("signal_the_server", "os.kill(PID, SIGNAL)"),
    Attempt("signal_the_servers_thread", "call(234, PID, PID, SIGNAL)"),
    Attempt("signal_everything", "os.kill(-1, 0)"),
    Attempt("signal_the_worker_of_another_model", "os.kill(OTHER, SIGNAL)"),
    Attempt("signal_by_descriptor", "signal.pidfd_send_signal(os.pidfd_open(PID), SIGNAL)"),
    Attempt("signal_with_a_child", "child('os.kill(%d, %d)' % (PID, SIGNAL))"),
    at_strict("outlive_the_worker", "subprocess.run(['/bin/true'], start_new_session=True, check=True)"),
    at_strict("leave_the_group_of_the_worker", "pid = os.fork()\nif pid == 0:\n    try: os.setpgid(0, 0)\n"
              "    except PermissionError: os._exit(7)\n    os._exit(0)\n"
              "if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7: raise PermissionError"),
    at_strict("memory_with_a_number_for_all", "reaches_kernel(30, -1, 0, 0)"),
    Attempt("signal_the_servers_group", "os.kill(-os.getpgid(PID), 0)"),
    Attempt("read_the_servers_limits", "import resource; resource.prlimit(PID, resource.RLIMIT_NOFILE)"),
    # The tracer ends at once, which lets the server go.
    of_root("trace_the_server", "child('import ctypes\\nl = ctypes.CDLL(None, use_errno=True)\\n"
            "if l.ptrace(0x4206, %d, None, None) < 0: raise PermissionError' % PID)"),
    Attempt("move_the_server_to_processors", "os.sched_setaffinity(PID, os.sched_getaffinity(PID))"),
    Attempt("move_the_worker_of_another_model", "os.sched_setaffinity(OTHER, os.sched_getaffinity(OTHER))"),
    Attempt("schedule_the_server", "os.sched_setscheduler(PID, os.SCHED_OTHER, os.sched_param(0))"),
    Attempt("schedule_the_worker_of_another_model", "os.sched_setscheduler(OTHER, os.SCHED_OTHER, os.sched_param(0))"),
    Attempt("change_the_servers_priority", "os.setpriority(os.PRIO_PROCESS, PID, os.getpriority(os.PRIO_PROCESS, PID))"),
    Attempt("change_the_priority_of_a_user", "os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0))"),
    Attempt("change_the_servers_turn_at_the_disk", "call(251, 1, PID, 0)"),
    of_root("become_another_user", "child('os.setuid(65534)')"),
    of_root("read_memory_by_call", "reaches_kernel(310, PID, 0, 0, 0, 0, 1)"),
    of_root("take_a_descriptor", "reaches_kernel(438, -1, 0, 0)"),
]

KERNEL = [
    of_root("mount", "reaches_kernel(166, b'/nowhere', 0)"),
    of_root("new_namespaces", "child('import ctypes\\nl = ctypes.CDLL(None, use_errno=True)\\n"
            "if l.unshare(0x10000000) < 0: raise PermissionError')"),
    of_root("new_namespaces_by_clone", "child('import ctypes\\nl = ctypes.CDLL(None, use_errno=True)\\n"
            "pid = l.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)\\nif pid == 0: l._exit(0)\\nif pid < 0: raise PermissionError')"),
    of_root("rings_that_filters_do_not_see", "reaches_kernel(425, 1, 0)"),
    of_root("programs_in_the_kernel", "reaches_kernel(321, -1, 0, 0)"),
    of_root("modules", "reaches_kernel(313, -1, b'', 0)"),
    of_root("counters_of_the_processor", "reaches_kernel(298, 0, 0, -1, -1, 0)"),
    of_root("keys_of_the_kernel", "call(250, 0, -3, 0)"),
    of_root("another_kernel", "reaches_kernel(246, 0, 65, 0, 0)"),
    of_root("files_by_handle", "reaches_kernel(304, -1, 0, 0)"),
    of_root("another_root", "reaches_kernel(161, b'/nowhere')"),
    of_root("the_clock", "reaches_kernel(227, 99, 0)"),
    Attempt("typing_into_a_terminal", "import fcntl\nfd = os.open(os.devnull, os.O_RDONLY)\n"
            "try: fcntl.ioctl(fd, 0x5412, b'x')\nexcept OSError as error:\n    if error.errno == 1: raise"),
    of_root("memory_faults", "reaches_kernel(323, -1)"),
]

NETWORK = [
    at_strict("connect_to_the_server", "import socket; socket.create_connection(('127.0.0.1', PORT)).close()"),
    at_strict("connect_with_a_child", "child('socket.create_connection((\"127.0.0.1\", %d)).close()' % PORT)"),
    at_strict("datagrams", "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()"),
    at_strict("listen", "import socket; socket.create_server(('127.0.0.1', 0)).close()"),
    at_strict("network_of_version_6", "import socket; socket.socket(socket.AF_INET6).close()"),
    at_strict("tables_of_the_network", "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()"),
    at_strict("a_program_behind_a_local_socket", "import socket; socket.socket(socket.AF_UNIX).connect(SOCKET)"),
    at_strict("a_socket_that_sends_to_any_local_one", "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).close()"),
    at_strict("a_pair_that_sends_to_any_local_socket", "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"),
    Attempt("a_program_behind_a_name_without_a_file", "import socket; socket.socket(socket.AF_UNIX).connect('\\0' + NAME)"),
    of_root("packets_of_the_network", "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()"),
]

SERVICES = [
    Attempt("load_another_model", "asks(lambda: pb.load_model('neighbour'))"),
    Attempt("load_a_model_of_its_own", "asks(lambda: pb.load_model('made', config='{\"backend\": \"python\"}',"
            " files={'file:1/model.py': b'', 'file:requirements.txt': b'./package'}))"),
    Attempt("load_itself_again", "asks(lambda: pb.load_model('hostile'))"),
    Attempt("unload_another_model", "asks(lambda: pb.unload_model('nowhere'))"),
]

ALL = FILES + PROCESSES + KERNEL + NETWORK + SERVICES
