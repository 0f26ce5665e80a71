"""Command lines: what the server starts with, refuses and warns about, beside the real one; scripts made from the table."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import servers
import tiers

STARTS = None
# Words of the command line, and what the real server says to them: nothing where it goes on to open the repository.
BOTH = [
    ("", STARTS),
    ("--log-verbose=true", STARTS),
    ("--log-verbose=-1", STARTS),
    ("--log-verbose=on", 'Bad option: "--log-verbose". Invalid option value. Got on'),
    ("--log-verbos=1", STARTS),
    ("--id=", STARTS),
    ("--id x", STARTS),
    ("--exit-timeout-secs=-1", STARTS),
    ("--model-load-thread-count=0", STARTS),
    ("--buffer-manager-thread-count=-1", STARTS),
    ("--exit-on-error=On --strict-readiness=0", STARTS),
    ("--strict-model-config=x", 'Bad option: "--strict-model-config". invalid value for bool option: x'),
    ("--model-control-mode=x", 'Bad option: "--model-control-mode". invalid argument for --model-control-mode'),
    ("--model-control-mode=EXPLICIT --load-model=x", STARTS),
    ("--load-model=x", "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well."),
    ("--nonsense", "unrecognized option '--nonsense'"),
    ("--load", "option '--load-model' requires an argument"),
    (
        "--log=1",
        "option '--log=1' is ambiguous; possibilities: '--log-verbose' '--log-info' '--log-warning' '--log-error' "
        "'--log-format' '--log-file'",
    ),
    ("-p 5", "invalid option -- 'p'"),
    ("--disable-auto-complete-config=1", "option '--disable-auto-complete-config' doesn't allow an argument"),
    ("--id", "option '--id' requires an argument"),
    ("--model-control-mode=poll --repository-poll-secs=-1", STARTS),
    ("--model-config-name=x --model-load-retry-count=3", STARTS),
    ("--model-config-name=", 'Bad option: "--model-config-name". Error: empty argument for --model-config-name'),
    ("--http-header-forward-pattern=a.* --grpc-header-forward-pattern=b.*", STARTS),
    ("--http-restricted-api=inference,health:a=b --http-restricted-api=metadata:c=d=e", STARTS),
    ("--http-restricted-api=foo:a=b", 'Bad option: "--http-restricted-api". unknown restricted api \'foo\''),
    (
        "--http-restricted-api=inference",
        "Bad option: \"--http-restricted-api\". --http-restricted-api option format is '<config name>:<setting>=<value>'. "
        "Got inference",
    ),
    (
        "--http-restricted-api=inference:a=b --http-restricted-api=health,inference:c=d",
        'Bad option: "--http-restricted-api". restricted api \'inference\' can not be specified in multiple config groups',
    ),
    ("--grpc-restricted-protocol=inference:a=b", STARTS),
    ("--grpc-restricted-protocol=foo:a=b", 'Bad option: "--grpc-restricted-protocol". unknown restricted protocol \'foo\''),
    ("--grpc-infer-response-compression-level=HIGH", STARTS),
    (
        "--grpc-infer-response-compression-level=x",
        'Bad option: "--grpc-infer-response-compression-level". invalid argument for --grpc',
    ),
    ("--grpc-max-connection-age=60000 --grpc-max-connection-age-grace=5000", STARTS),
    ("--allow-sagemaker=true --sagemaker-port=8090", STARTS),
    ("--sagemaker-safe-port-range=1-2 --sagemaker-port=9 --vertex-ai-port=7 --vertex-ai-default-model=m", STARTS),
    ("--sagemaker-safe-port-range=a-b", 'Bad option: "--sagemaker-safe-port-range". Invalid option value. Got a'),
    (
        "--allow-sagemaker=true --sagemaker-safe-port-range=1-2",
        "The server cannot listen to HTTP requests at port 8000, allowed port range is [1, 2]",
    ),
    ("--pinned-memory-pool-byte-size=0", STARTS),
    ("--cuda-memory-pool-byte-size=0:100", STARTS),
    ("--cuda-memory-pool-byte-size=a:1", 'Bad option: "--cuda-memory-pool-byte-size". Invalid option value. Got a'),
    ("--cuda-memory-pool-byte-size=0:x", 'Bad option: "--cuda-memory-pool-byte-size". Invalid option value. Got x'),
    ("--cuda-virtual-address-size=0:5", STARTS),
    ("--min-supported-compute-capability=7.5", STARTS),
    ("--min-supported-compute-capability=x", 'Bad option: "--min-supported-compute-capability". Invalid option value. Got x'),
    ("--rate-limit=execution_count", STARTS),
    ("--rate-limit=Off", STARTS),
    ("--rate-limit=x", 'Bad option: "--rate-limit". invalid argument for --rate-limit'),
    ("--rate-limit-resource=R:4", STARTS),
    ("--rate-limit-resource=R:4:0", STARTS),
    ("--rate-limit-resource=:-4", STARTS),
    (
        "--rate-limit-resource=R",
        "Bad option: \"--rate-limit-resource\". --rate-limit-resource option format is "
        "'<resource_name>:<count>:<device>' or '<resource_name>:<count>'. Got R",
    ),
    (
        "--rate-limit-resource=R:4:0:1",
        "Bad option: \"--rate-limit-resource\". --rate-limit-resource option format is "
        "'<resource_name>:<count>:<device>' or '<resource_name>:<count>'. Got R:4:0:1",
    ),
    ("--rate-limit-resource=R:x", 'Bad option: "--rate-limit-resource". Invalid option value. Got x'),
    ("--host-policy=gpu_0,numa-node=0", STARTS),
    ("--host-policy=cpu,cpu-cores=0-1", STARTS),
    (
        "--host-policy=cpu",
        "Bad option: \"--host-policy\". --host-policy option format is '<policy name>,<setting>=<value>'. Got cpu",
    ),
    (
        "--host-policy=,numa-node=0",
        "Bad option: \"--host-policy\". --host-policy option format is '<policy name>,<setting>=<value>'. "
        "Got ,numa-node=0",
    ),
    (
        "--host-policy=cpu,foo=1",
        "setting host policy: Unsupported - Unsupported host policy setting 'foo' is specified, supported settings are "
        "'numa-node', 'cpu-cores'",
    ),
    ("--model-load-gpu-limit=0:0.5", STARTS),
    (
        "--model-load-gpu-limit=0:1.5",
        "setting model load GPU limit: Invalid argument - expects limit fraction to be in range [0.0, 1.0], got 1.500000",
    ),
    (
        "--model-load-gpu-limit=0:-0.5",
        "setting model load GPU limit: Invalid argument - expects limit fraction to be in range [0.0, 1.0], got -0.500000",
    ),
    ("--model-load-gpu-limit=-1:0.5", "setting model load GPU limit: Invalid argument - expects device ID >= 0, got -1"),
    ("--model-load-gpu-limit=0:x", 'Bad option: "--model-load-gpu-limit". Invalid option value. Got x'),
    ("--cache-config=local,size=1000", STARTS),
    ("--cache-config=local,size=1000 --cache-config=local,other=1", STARTS),
    ("--cache-config=foo,a=1", "creating server: Invalid argument - unable to find 'libtritoncache_foo.so' for cache. Searched: "),
    ("--cache-directory=", STARTS),
    (
        "--cache-directory= --cache-config=local,size=1000",
        "creating server: Invalid argument - cache directory can not be empty",
    ),
    (
        "--cache-config=local,size=8192 --cache-config=redis,key=value",
        "creating server: Invalid argument - found multiple cache configurations, but only a single cache is currently supported",
    ),
    (
        "--cache-config=local,siz=8192",
        "creating server: Invalid argument - Failed to initialize LocalCache: config didn't contain a valid 'size' field.",
    ),
    *[
        (f"--cache-config=local,size={size}", f"creating server: Internal - Failed to initialize LocalCache: {why}")
        for size, why in (
            ("abc", "stoull"), ("0", "Could not initialize buffer"), ("1", "Could not initialize buffer"),
            ("150", "Could not initialize buffer"), ("99999999999999999", "failed to allocate buffer"),
        )
    ],
    ("--cache-config=local,size=200", STARTS),
    ("--response-cache-byte-size=0", "creating server: Internal - Failed to initialize LocalCache: Could not initialize buffer"),
    ("--response-cache-byte-size=2000000", STARTS),
    (
        "--cache-config=size=1",
        'Bad option: "--cache-config". No cache specified. --cache-config option format is '
        "<cache name>,<setting>=<value>. Got size=1",
    ),
    (
        "--cache-config=local,size",
        "Bad option: \"--cache-config\". --cache-config option format is '<cache name>,<setting>=<value>'. Got local,size",
    ),
    (
        "--cache-config=local,size=2000000 --response-cache-byte-size=2000000",
        "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one or "
        "the other.",
    ),
    *[(f"--trace-level={level}", STARTS) for level in "OFF false MIN MAX true ON timestamps TENSORS".split()],
    ("--trace-level=x", 'Bad option: "--trace-level". invalid value for trace level option: x'),
    ("--trace-level=OFF --trace-config=level=TIMESTAMPS", STARTS),
    ("--trace-rate=-1 --trace-count=-2 --trace-log-frequency=-3 --trace-file=x", STARTS),
    ("--trace-rate=5 --trace-config=rate=6", STARTS),
    ("--trace-config=level=MIN --trace-config=opentelemetry,url=x", STARTS),
    ("--trace-config=level=MIN --trace-config=mode=opentelemetry", STARTS),
    ("--trace-config=foo=bar", STARTS),
    (
        "--trace-config=a",
        "Bad option: \"--trace-config\". --trace-config option format is '<trace mode>,<setting>=<value>'. Got a",
    ),
    ("--trace-config=level=x", 'Bad option: "--trace-config level". invalid value for trace level option: x'),
    ("--trace-config=rate=x", 'Bad option: "--trace-config rate". Invalid option value. Got x'),
    ("--trace-config=triton,log-frequency=x", 'Bad option: "--trace-config triton,log-frequency". Invalid option value. Got x'),
    (
        "--trace-config=mode=x",
        'Bad option: "--trace-config mode". invalid value for trace mode option: x. Available options are "triton" and '
        '"opentelemetry"',
    ),
    (
        "--trace-config=foo,a=1",
        'Bad option: "--trace-config". invalid value for trace mode option: foo. Available options are "triton" and '
        '"opentelemetry"',
    ),
    (
        "--trace-config=,a=1",
        'Bad option: "--trace-config". No trace mode specified. --trace-config option format is '
        "<trace mode>,<setting>=<value> or <setting>=<value>. Got ,a=1",
    ),
    ("--metrics-config=counter_latencies=false", STARTS),
    ("--metrics-config=summary_latencies=true --metrics-config=summary_quantiles=0.5:0.05,0.9:0.01", STARTS),
    ("--metrics-config=foo=bar", STARTS),
    ("--metrics-config=foo", 'Bad option: "--metrics-config". --metrics-config option format is <setting>=<value>. Got foo'),
    (
        "--metrics-config=a,b=c",
        'Bad option: "--metrics-config". --metrics-config option format is <setting>=<value>. Got a,b=c',
    ),
    ("--metrics-interval-ms=0", STARTS),
    ("--backend-config=default-max-batch-size=4", STARTS),
    ("--backend-config=a,b,c=d=e", STARTS),
    (
        "--backend-config=,a=b",
        'Bad option: "--backend-config". No backend specified. --backend-config option format is '
        "<backend name>,<setting>=<value> or <setting>=<value>. Got ,a=b",
    ),
    *[
        (
            f"--backend-config={value}",
            "Bad option: \"--backend-config\". --backend-config option format is "
            f"'<backend name>,<setting>=<value>'. Got {value}",
        )
        for value in ("a", "a,b", "a,=b", "a,b=", "a=b,c")
    ],
    ("--repoagent-directory=", "creating server: Invalid argument - --repoagent-directory can not be empty"),
    ("--backend-directory= --cache-directory=x", STARTS),
    ("--strict-model-config=true", STARTS),
    ("--strict-model-config=false --disable-auto-complete-config", STARTS),
    (
        "--http-port=8001",
        "The server cannot listen to HTTP requests and GRPC requests at the same address and port 0.0.0.0:8001",
    ),
    (
        "--metrics-port=8000",
        "The server cannot listen to HTTP requests and metrics requests at the same address and port 0.0.0.0:8000",
    ),
    ("--allow-http=false --allow-grpc=0 --allow-metrics=Off", STARTS),
    ("--http-port=-47 --allow-http=0", STARTS),
    ("--grpc-port -47 --allow-grpc 0 --grpc-address -47", STARTS),
    ("--metrics-port=70000 --allow-metrics=0", STARTS),
    ("--http-port=8001 --allow-http=0", STARTS),
    ("--enable-peer-access=false --repository-poll-secs=5", STARTS),
    ("--model-control-mode=explicit extra", "Unexpected argument: extra"),
    ("--grpc-infer-allocation-pool-size=4 --grpc-keepalive-permit-without-calls=true", STARTS),
]
# Ours differs: why, the command line, what the real server says, what ours says.
DIFFERENT = [
    ("a word that is no level", "--log-format=iso8601", 'Bad option: "--log-format". invalid argument for --log-format', STARTS),
    ("one dash too few is seen", "-id x", "invalid option -- 'i'", "unrecognized option '-id'; did you mean '--id'?"),
    (
        "no number is cut short", "--http-port=12x", STARTS,
        'Bad option: "--http-port". Invalid option value. Got 12x',
    ),
    (
        "no such port", "--http-port=70000", STARTS,
        'Bad option: "--http-port". Provided option value is out of bound. Got 70000, expected 0 to 65535',
    ),
    (
        "the form is named", "--cuda-memory-pool-byte-size=0",
        'Bad option: "--cuda-memory-pool-byte-size". Cannot parse pair option due to incorrect number of inputs.',
        'Bad option: "--cuda-memory-pool-byte-size". --cuda-memory-pool-byte-size option format is <GPU>:<bytes>. Got 0',
    ),
    (
        "not encrypted is worse than not started", "--grpc-use-ssl=true", STARTS,
        "Error: --grpc-use-ssl needs the server's certificate in --grpc-server-cert.",
    ),
    ("no value for yes", "--metrics-config=counter_latencies=x", STARTS,
     'Bad option: "--metrics-config". invalid value for bool option: x'),
]
# Only in 2.73.
NEW = ["--allow-client-shm=true", "--grpc-infer-thread-count=4", "--grpc-max-response-pool-size=9", "--http-max-input-size=1000"]

NOWHERE = "/nonexistent/repository"


def run(target, words):
    """The exit status and everything the server says; there is no repository, so that it ends by itself."""
    words = [f"--model-repository={NOWHERE}", *words.split()]
    if target == "galatea":
        command, env = [servers.galatea_binary(), "serve", *words], None
    else:
        home = servers.PEERS / "triton"
        command = [home / "server/bin/tritonserver", f"--cache-directory={home}/server/caches", *words]
        env = {"LD_LIBRARY_PATH": f"{home}/lib", "PATH": "/usr/bin:/bin", "TRITON_SERVER_CPU_ONLY": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    return done.returncode, done.stdout + done.stderr


def refusal(target, words):
    """Why the server refuses its command line, on one line; `STARTS` where it goes on to open the repository."""
    status, text = run(target, words)
    assert status == 1, text
    if NOWHERE in text and re.search(r"^error: creating server: ", text, re.M) and "Usage:" not in text:
        last = text[text.rindex("error: creating server: "):]
        if NOWHERE in last:
            return STARTS
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if target == "galatea":
        return next(line.removeprefix("error: ") for line in lines if line.startswith("error: "))
    for number, line in enumerate(lines):
        if line.startswith("Bad option"):
            return f"{line} {lines[number + 1]}"
        if line.startswith("error: "):
            return line.removeprefix("error: ")
        if re.match("Unexpected argument|The server cannot|Error: [UI]", line):
            return line
    return lines[0].split(": ", 1)[1]


def warnings(target, words):
    """Warnings about deprecated flags, in order."""
    text = run(target, words)[1]
    if target == "triton":
        return re.findall(r"^Warning: (.*\S)", text, re.M)
    return re.findall(r'^W.*\] "Warning: (.*deprecated.*)"$', text, re.M)


@tiers.both
def test_flags_are_accepted_and_refused_like_in_triton(target):
    expected = BOTH + [(words, ours if target == "galatea" else theirs) for _, words, theirs, ours in DIFFERENT]
    wrong = []
    for words, text in expected:
        said = refusal(target, words)
        # Ours may say more behind it: what would be right.
        good = said is STARTS if text is STARTS else said is not STARTS and said.startswith(text)
        if not good:
            wrong.append(f"{words}: {said!r}, expected {text!r}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_flags_of_later_releases_are_accepted():
    assert [refusal("galatea", words) for words in NEW] == [STARTS] * len(NEW)


@tiers.both
def test_deprecated_flags_are_warned_about(target):
    old = "'--trace-{}' has been deprecated and will be removed in future releases. Please use '--trace-config {} instead."
    strict = "'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead."
    overriding = "Overriding deprecated '--strict-model-config' from False to True in favor of '--disable-auto-complete-config'!"
    cache = (
        "'--response-cache-byte-size' has been deprecated! This will default to the 'local' cache implementation with the "
        "provided byte size for its config. Please use '--cache-config' instead. The equivalent --cache-config CLI args "
        "would be: '--cache-config=local,size=2000000'"
    )
    rate = old.format("rate", "rate=<rate value>")
    for words, expected in [
        ("--strict-model-config=true", [strict]),
        ("--strict-model-config=false --disable-auto-complete-config", [strict, overriding]),
        ("--response-cache-byte-size=2000000", [cache]),
        ("--trace-level=MIN", [old.format("level", "level=<OFF|TIMESTAMPS|TENSORS>")]),
        ("--trace-file=x", [old.format("file", "triton,file=<filepath>")]),
        ("--trace-count=5", [old.format("count", "count=<count value>")]),
        ("--trace-log-frequency=5", [old.format("log-frequency", "triton,log-frequency=<log frequency value>")]),
        ("--trace-rate=5", [rate]),
        (
            "--trace-rate=5 --trace-config=rate=6",
            [rate, "Overriding deprecated '--trace-rate' in favor of provided rate value in --trace-config!"],
        ),
    ]:
        assert warnings(target, words) == expected, words


def made(*words):
    done = subprocess.run([servers.galatea_binary(), *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


SHELL_LINES = [
    # The words so far, some of what is offered, and whether that is all.
    (["galatea", ""], {"serve", "perf", "runtime", "completions", "manual"}, False),
    (["galatea", "se"], {"serve"}, True),
    (["galatea", "serve", "--model-con"], {"--model-control-mode", "--model-config-name"}, True),
    (["galatea", "serve", "--model-control-mode", ""], {"none", "poll", "explicit"}, True),
    (["galatea", "serve", "--model-control-mode", "=", "e"], {"explicit"}, True),
    (["galatea", "serve", "--allow-http", "=", ""], {"true", "false"}, True),
    (["galatea", "serve", "--http-port", ""], set(), True),
    (["galatea", "runtime", "install", "o"], {"onnxruntime", "openvino"}, True),
    (["galatea", "runtime", "install", "--wh"], {"--wheel"}, True),
    (["galatea", "completions", ""], {"bash", "zsh", "fish"}, True),
    (["/opt/bin/tritonserver", "--exit-on"], {"--exit-on-error"}, True),
    (["perf_analyzer", "--concurrency"], {"--concurrency-range"}, True),
]


def test_bash_completes_commands_and_flags():
    script = made("completions", "bash")
    for words, expected, is_all in SHELL_LINES:
        quoted = " ".join(f"'{word}'" for word in words)
        ask = f'{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _galatea_complete; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "--norc", "-c", ask], capture_output=True, text=True, timeout=30)
        offered = set(done.stdout.split())
        assert done.stderr == "", done.stderr
        assert offered == expected if is_all else offered >= expected, (words, offered)


def test_model_names_are_completed(tmp_path):
    """The completion asks the server at the default port; without a server it prints nothing."""
    isolated = next((words for words in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]) if can(*words, "ip", "link", "set", "lo", "up")), None)
    if isolated is None:
        assert subprocess.run([servers.galatea_binary(), "completions", "model-names"], capture_output=True).stderr == b""
        return
    play = [sys.executable, pathlib.Path(__file__).with_name("completion_play.py"), servers.galatea_binary(), tmp_path]
    words = [*isolated, "bash", "-ec", 'ip link set lo up; exec "$@"', "sh", *play]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert {"iris", "resnet-50_v1.5", "--stream"} <= set(seen["infer "]) and not {"-x", "*", "a"} & set(seen["infer "])
    assert seen["infer ir"] == seen["models load i"] == ["iris"] and seen["infer --st"] == ["--stream"]
    assert sorted(seen["models re"]) == ["reload", "resnet-50_v1.5"]
    assert seen["names"] == "iris\nresnet-50_v1.5\n", "plain names alone: shells expand what they are offered"
    assert (seen["gone"], seen["none"], seen["owned"]) == ([], "", False)


def can(*words):
    return shutil.which(words[0]) is not None and subprocess.run(words, capture_output=True).returncode == 0


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed here")
def test_zsh_accepts_its_completion_script(tmp_path):
    """zsh parses the script and loads it; `_arguments` receives the specifications of `serve`."""
    file = tmp_path / "_galatea"
    file.write_text(made("completions", "zsh"))
    ask = (
        f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -d {tmp_path}/dump; print $_comps[tritonserver]; "
        f"_arguments() {{ print -l -- $@; }}; source {file}; service=tritonserver; _galatea_complete"
    )
    done = subprocess.run(["zsh", "-f", "-c", ask], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "_galatea", lines[:3]
    assert any(line.startswith("*--model-control-mode=[") and line.endswith(":value:(none poll explicit)") for line in lines)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed here")
def test_fish_completes_commands_and_flags():
    script = made("completions", "fish")
    for line, expected in [
        ("galatea se", "serve"),
        ("galatea serve --model-control-mode ", "explicit"),
        ("galatea runtime install o", "onnxruntime"),
        ("tritonserver --exit-on", "--exit-on-error"),
        ("perf_analyzer --concurrency", "--concurrency-range"),
    ]:
        ask = f"{script}\ncomplete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, timeout=60)
        assert done.stderr == "", done.stderr
        assert expected in [offer.split("\t")[0] for offer in done.stdout.splitlines()], (line, done.stdout)


def test_the_documented_command_installs_the_manual_page(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/galatea").symlink_to(servers.galatea_binary())
    hint = "".join(re.findall(r"^  (.*\n)", made("manual", "--help"), re.M))
    env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", hint], env=env, check=True, timeout=60)
    page = tmp_path / "share/man/man1/galatea.1"
    assert page.read_text() == made("manual")
    if shutil.which("manpath"):
        found = subprocess.run(["man", "--where", "galatea"], env={name: value for name, value in env.items() if name != "MANPATH"}, capture_output=True, text=True)
        assert found.stdout.strip() == str(page), found


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed here")
def test_the_manual_page_is_well_formed():
    """The formatter gives no warning and shows every option as typed."""
    page = made("manual")
    done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-c"], input=page, capture_output=True, text=True, timeout=60)
    assert done.stderr == "", done.stderr
    text = re.sub(r".\x08", "", done.stdout)
    for option in ["--model-repository <string>", "--drain-delay-secs <integer>", "-h, --help", "--concurrency-range"]:
        assert option in text, option
