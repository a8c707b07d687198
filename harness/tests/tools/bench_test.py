# SPDX-License-Identifier: MIT
"""scripts/bench.sh with a GPU, a fa and a PyTorch that only write down how they were called."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

import support

from pages import prose
from pages.numbers import RowKey
from pages.site import parse_problem

import ladder
from ladder import Problem

TABLE = re.compile(r"<!-- table:(ladder|memory) (\S+) (\S+)")
SCRIPT = support.REPOSITORY / "scripts" / "bench.sh"
FAMILIES = {"a": "fp32", "0": "ampere", "2": "hopper", "3": "hopper"}


def rung(
    id: str, parent: str = "", causal: bool = False, ragged: bool = False, family: str = ""
) -> dict:
    dtype = "float32" if id.startswith("a") else "float16"
    fields = {"id": id, "parent": parent, "dtype": dtype, "family": family or FAMILIES[id[0]]}
    fields["instances"] = [{"ablation": False, "refused": None}]
    model = {"strided": False, "windowed": False, "sinks": False, "packed": False}
    return fields | model | {"causal": causal, "ragged": ragged}


LISTING = [rung("a0", "", causal=True), rung("a1", "a0"), rung("a2", "a1", causal=True)]
LISTING += [rung("01"), rung("02", "01", causal=True, ragged=True), rung("30", "02", causal=True)]
GUARDED = [rung(id, causal=id >= "30") for id in ("26", "27", "28", "29", "30", "31", "32")]
GUARDED += [rung("x1", family="own")]

FA = """#!/bin/sh
[ "$1" != limits ] || echo "$*" >>"$LIMITS"
[ "$1" != list ] || cat <<'END'
{listing}
END
"""
GPU = """#!/bin/sh
echo "GPU 0: none"
"""
# What is in $CODES answers the calls of peers.py one after the other; then they succeed.
PYTHON = f"""#!/bin/sh
case "$1" in
  *peers.py) shift ;;
  *) exec {sys.executable} "$@" ;;
esac
echo "$*" >>"$LOG"
code=$(sed -n "$(wc -l <"$LOG")p" "$CODES")
exit "${{code:-0}}"
"""


def benches_of(log: str) -> list[list[str]]:
    """The words of each bench; a process has several, with --then between them."""
    return [bench.split() for line in log.splitlines() for bench in line.split(" --then ")]


@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class BenchTest(support.FolderTest):
    def bench(
        self, *words: str, codes: str = "", listing: list[dict] = LISTING, named: bool = True
    ) -> tuple[int, list[list[str]], str]:
        """(exit code, what peers.py was called with, stderr)"""
        fa = FA.format(listing=json.dumps({"rungs": listing}))
        for name, text in (("fa", fa), ("nvidia-smi", GPU), ("python3", PYTHON)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        log, answers = self.folder / "log", self.folder / "codes"
        log.write_text("")
        answers.write_text(codes)
        environment = os.environ | {"FA_BUILD_DIR": str(self.folder), "LOG": str(log)}
        self.limits = self.folder / "limits"
        environment |= {"LIMITS": str(self.limits)}
        environment |= {"PATH": f"{self.folder}:{os.environ['PATH']}", "CODES": str(answers)}
        environment |= {"FA_RUNS_DIR": str(self.folder / "runs")}
        target = ["--json", self.folder / "out" / "main.json"] if named else []
        command = [SCRIPT, "--no-build", *target, *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, benches_of(log.read_text()), done.stderr

    def test_without_a_file_results_go_to_the_folder_of_runs(self) -> None:
        code, calls, err = self.bench("--sets", "fp32", named=False)
        self.assertEqual(code, 0, err)
        folders = {Path(self.option(call, "--json")).parent for call in calls}
        self.assertEqual({folder.parent for folder in folders}, {self.folder / "runs"})

    def test_a_folder_of_runs_that_cannot_be_made_is_named(self) -> None:
        (self.folder / "runs").write_text("a file")
        code, calls, err = self.bench("--sets", "fp32", named=False)
        self.assertEqual((code, calls), (3, []))
        self.assertIn("set FA_RUNS_DIR to a folder that can be written", err)

    def rungs(self, call: list[str]) -> list[str]:
        return call[: next(place for place, word in enumerate(call) if word.startswith("--"))]

    def option(self, call: list[str], name: str) -> str:
        return call[call.index(name) + 1] if name in call else ""

    def file(self, call: list[str]) -> str:
        return Path(self.option(call, "--json")).name

    def test_the_ladder_has_no_float32_rung_and_one_policy(self) -> None:
        code, calls, err = self.bench("--sets", "ladder,causal,ragged")
        self.assertEqual(code, 0, err)
        for call in calls:
            ragged = "1000,1024,8191,8192" in call
            self.assertEqual(self.file(call), "ragged.json" if ragged else "main.json")
            self.assertNotIn("--rounds", call)
            self.assertFalse(set(self.rungs(call)) & {"a0", "a1", "a2"}, call)
            if ragged:
                self.assertEqual(self.rungs(call), ["02"])
            elif "--causal" in call:
                self.assertEqual(self.rungs(call), ["02", "30"])
            elif "16384" in self.option(call, "--seqs"):
                self.assertEqual(self.rungs(call), ["30"])
            else:
                self.assertEqual(self.rungs(call), ["01", "02", "30"])
        self.assertTrue(any("--causal" in call for call in calls))
        self.assertTrue(any(self.file(call) == "ragged.json" for call in calls))

    def test_runs_of_a_set_are_files_of_a_folder(self) -> None:
        out = self.folder / "out"
        for name in ("main", "fp32"):  # as if the first run had written them, but no chart is drawn
            (out / name).mkdir(parents=True)
            (out / name / "run1.json").touch()
        calls = self.bench("--sets", "ladder,fp32", "--runs", "2")[1]
        files = [Path(self.option(call, "--json")) for call in calls]
        expected = [out / name / f"run{run}.json" for run in (1, 2) for name in ("main", "fp32")]
        self.assertEqual(list(dict.fromkeys(files)), expected)
        for call, file in zip(calls, files, strict=True):
            self.assertEqual(self.option(call, "--rounds"), "1")
            self.assertIn("--brief", call)
            self.assertEqual("--backwards" in call, file.name == "run2.json")
            first = "" if file.name == "run1.json" else str(file.with_name("run1.json"))
            self.assertEqual(self.option(call, "--verified"), first)

    def test_a_number_of_runs_is_one(self) -> None:
        for bad in ("0", "x", "100", "", "-1"):
            code, calls, err = self.bench("--runs", bad)
            self.assertEqual((code, calls), (2, []))
            self.assertIn(f"--runs '{bad}' is not between 1 and 99", err)
        code, calls, err = self.bench("--runs", "2", "06", "--seqs", "512")
        self.assertEqual((code, calls), (2, []))
        self.assertIn("--runs cannot be combined with '06 --seqs 512'", err)

    def test_what_the_chapters_quote_of_float16_is_measured(self) -> None:
        """Every problem of h200/ladder that a marker names, and the tiles that are no rung's own."""
        measured, tiles = set(), set()
        for call in self.bench("--sets", "ladder,causal")[1]:
            dim, mask = self.option(call, "--dim") or "128", "--causal" in call
            for seq in self.option(call, "--seqs").split(","):
                measured.add((seq, dim, mask))
                if "--no-ablations" not in call:
                    tiles.add((seq, dim, mask))
        quoted = [
            ("@" in id, (str(problem.seq_q), str(problem.head_dim), problem.causal))
            for file, id, problem in self.quoted()
            if file == "h200/ladder"
        ]
        self.assertTrue(quoted)
        for tile, problem in quoted:
            self.assertIn(problem, tiles if tile else measured)

    def test_what_the_chapters_quote_of_gradients_is_measured(self) -> None:
        listing = json.loads(ladder.run_fa("list", "--json"))["rungs"]
        code, calls, err = self.bench("--sets", "backward", listing=listing)
        self.assertEqual(code, 0, err)
        measured = set()
        for call in calls:
            words = {name: self.option(call, name) for name in call if name.startswith("--")}
            self.assertEqual(len(words), sum(word.startswith("--") for word in call), call)
            lengths = words.get("--query-lengths", "")
            each = lengths.split(",") if lengths not in ("", "random") else []
            for seq in words.get("--seqs", max(each, key=int, default="")).split(","):
                for id in (*self.rungs(call), *words["--peers"].split(",")):
                    shape = (words.get("--batch") or str(len(each)), words["--heads"], seq)
                    kind = (words.get("--dim", "128"), "--causal" in call, bool(lengths))
                    rest = (words.get("--kv-heads", "0"), words.get("--window-left", "-1"))
                    measured.add((id, *shape, *kind, *rest, float(words.get("--spread", 1))))
        quoted = set()
        for file, id, each in self.quoted():
            if file == "h200/backward":
                shape = (str(each.batch), str(each.heads), str(each.seq_q), str(each.head_dim))
                kind = (each.causal, bool(each.lengths), str(each.kv_heads), str(each.window_left))
                quoted.add((id, *shape, *kind, each.spread))
        self.assertGreater(len(quoted), 40)
        self.assertEqual(quoted - measured, set())

    def quoted(self) -> Iterator[tuple[str, str, Problem]]:
        """(file, rung or peer, problem) of every measured number in the pages."""
        for page in (support.REPOSITORY / "docs").glob("*.md"):
            text = page.read_text(encoding="utf-8")
            for key in prose.keys(text):
                if key.split()[0] not in ("counts", "sass", "limit"):
                    row = RowKey.parse(key)
                    yield row.file, row.id, row.problem
            for kind, file, problem in TABLE.findall(text):
                yield file, kind, parse_problem(problem)

    def test_limits_have_a_file_of_their_own(self) -> None:
        code, calls, err = self.bench("--sets", "limits")
        self.assertEqual((code, calls), (0, []), err)
        file = self.folder / "out" / "limits.json"
        self.assertEqual(self.limits.read_text(), f"limits --json {file}\n")
        file.write_text("{}")
        self.limits.unlink()
        _, _, err = self.bench("--sets", "limits")
        self.assertFalse(self.limits.exists(), "measured limits were measured again")
        self.assertIn("limits.json is there and stays", err)
        afresh = f"limits --json {file} --overwrite\n"
        self.bench("--sets", "limits", "--overwrite")
        self.assertEqual(self.limits.read_text(), afresh)
        file.write_text(json.dumps({"kind": "limits", "interrupted": True, "rows": []}, indent=1))
        self.limits.unlink()
        self.bench("--sets", "limits")
        self.assertEqual(self.limits.read_text(), afresh, "an interrupted measurement stays")

    def test_overwrite_starts_a_file_afresh_once(self) -> None:
        _, calls, _ = self.bench("--sets", "ladder,fp32", "--overwrite")
        for name in ("main.json", "fp32.json"):
            afresh = ["--overwrite" in call for call in calls if self.file(call) == name]
            self.assertEqual(afresh, [True] + [False] * (len(afresh) - 1))

    def test_float32_has_a_file_of_its_own(self) -> None:
        code, calls, err = self.bench("--sets", "fp32")
        self.assertEqual(code, 0, err)
        self.assertEqual({self.file(call) for call in calls}, {"fp32.json"})
        rounds = {self.option(call, "--rounds") for call in calls}
        self.assertEqual(len(rounds), 1, "a file has one policy")
        for call in calls:
            self.assertFalse(set(self.rungs(call)) & {"01", "02"}, call)
        longest = [call for call in calls if "65536" in self.option(call, "--seqs")]
        self.assertEqual([self.rungs(call) for call in longest], [["a0", "a2"], ["none"]])

    def test_the_spreads_are_those_of_the_chart(self) -> None:
        code, calls, err = self.bench("--sets", "spread", listing=GUARDED)
        self.assertEqual(code, 0, err)
        seen = []
        for call in calls:
            self.assertEqual(self.file(call), "spread.json")
            self.assertIn("--no-ablations", call)
            masked = "--causal" in call
            self.assertEqual(self.rungs(call), ["32"] if masked else ["27", "28", "32"])
            inputs = self.option(call, "--inputs") or self.option(call, "--spread")
            seen.append((self.option(call, "--dim") or "128", masked, inputs))
        plain = [("128", False, each) for each in ("1", "2", "4", "8", "16", "rising")]
        kinds = [("128", True), ("64", False), ("64", True)]
        others = [(*kind, each) for each in ("1", "16") for kind in kinds]
        self.assertEqual(seen, plain + others)

    def test_what_the_card_does_not_run_is_left_out(self) -> None:
        listing = [rung("01"), rung("30", causal=True)]
        listing[1]["instances"] = [{"ablation": False, "refused": "too much shared memory"}]
        code, calls, err = self.bench("--sets", "ladder,spread", listing=listing)
        self.assertEqual(code, 0, err)
        self.assertEqual({id for call in calls for id in self.rungs(call)}, {"01"})
        self.assertIn("spread: no rung of it runs on this GPU", err)

    def test_a_wrong_row_does_not_stop_the_others_and_is_told_at_the_end(self) -> None:
        expected = self.bench("--sets", "ladder,ragged")[1]
        code, calls, err = self.bench("--sets", "ladder,ragged", codes="1\n")
        self.assertEqual(calls, expected)
        self.assertEqual(code, 1)
        self.assertIn("some rows are not ok", err)

    def test_what_does_not_fit_is_no_failure_where_it_is_looked_for(self) -> None:
        # The first process has the shapes that fit, the second those that need not.
        self.assertEqual(self.bench("--sets", "fp32", codes="0\n3\n")[0], 0)
        self.assertEqual(self.bench("--sets", "fp32", codes="3\n")[0], 3)
        self.assertEqual(self.bench("--sets", "fp32", codes="0\n1\n")[0], 1)

    def test_what_the_chapters_quote_of_float32_is_measured(self) -> None:
        """Every row of h200/fp32 that a page names."""
        measured = set()
        for call in self.bench("--sets", "fp32")[1]:
            words = [self.option(call, name) for name in ("--batch", "--heads", "--dim")]
            for seq in self.option(call, "--seqs").split(","):
                measured.add((words[0], words[1], seq, words[2]))
        quoted = set()
        for file, _, problem in self.quoted():
            if file == "h200/fp32":
                shape = (problem.batch, problem.heads, problem.seq_q, problem.head_dim)
                quoted.add(tuple(map(str, shape)))
        self.assertGreater(len(quoted), 5)
        self.assertEqual(quoted - measured, set())

    def test_a_refusal_stops(self) -> None:
        code, calls, err = self.bench("--sets", "ragged,ladder", codes="2\n")
        self.assertEqual(code, 2)
        self.assertEqual({self.file(call) for call in calls}, {"ragged.json"})
        self.assertIn("was refused", err)

    def test_options_of_fa_bench_are_all_that_is_measured(self) -> None:
        code, calls, _ = self.bench("02", "--seqs", "512")
        self.assertEqual(code, 0)
        self.assertEqual([call[:3] for call in calls], [["02", "--seqs", "512"]])

    def test_bad_sets(self) -> None:
        allowed = "allowed: limits, ladder, causal, ragged, model, packed, decode, cold, fp32, spread"
        for words in (("--sets", "ladder,nonsense"), ("--sets",), ("--sets", "")):
            code, calls, err = self.bench(*words)
            self.assertEqual((code, calls), (2, []), words)
            self.assertIn(allowed, err)
        code, calls, err = self.bench("--sets", "fp32", "06")
        self.assertEqual((code, calls), (2, []))
        self.assertIn("--sets cannot be combined with '06'", err)


VM = """#!/bin/sh
echo "$*" >>"$LOG"
[ "$1" != "$STOPS" ] || exec sleep 60
[ "$1" != explain ] || exit "$CODE"
"""
# It does not stop what it has started, as cmake does not stop ninja.
OTHERS = """#!/bin/sh
case "$*" in
  *"$STOPS"*) [ "$CODE" = 0 ] || trap "" TERM; sleep 60 & echo $! >>"$LOG"; wait ;;
esac
"""


@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class WithoutGpuTest(support.FolderTest):
    """The same with a fa that writes down how it was called, and no GPU."""

    def setUp(self) -> None:
        super().setUp()
        for name, text in (("fa", VM), ("nvidia-smi", "#!/bin/sh\n")):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        self.log = self.folder / "log"
        self.log.write_text("")

    def start(self, file: object, *words: str, stops: str = "", code: int = 0) -> subprocess.Popen:
        return self.script(SCRIPT, "--no-build", "--json", file, *words, stops=stops, code=code)

    def script(self, *command: object, stops: str = "", code: int = 0) -> subprocess.Popen:
        environment = os.environ | {"FA_BUILD_DIR": str(self.folder), "LOG": str(self.log)}
        environment |= {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        environment |= {"STOPS": stops, "CODE": str(code), "FA_VENV_DIR": str(self.folder)}
        return subprocess.Popen(
            [str(word) for word in command], env=environment, stderr=subprocess.PIPE, text=True,
            # Of a test that runs in the background the signal may be ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def refused(self, file: object, says: str, code: int) -> None:
        process = self.start(file)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, err)
        self.assertIn(says, err)
        self.assertEqual(self.log.read_text(), "", "refused before anything is run")

    def test_a_file_that_is_there_stays(self) -> None:
        file = self.folder / "mine.json"
        file.write_text("mine")
        self.refused(file, "exists; --overwrite replaces it", 2)
        self.assertEqual(file.read_text(), "mine")
        self.start(file, "--overwrite", code=3).communicate(timeout=60)
        self.assertIn(f"--save {file} --overwrite\n", self.log.read_text())

    def test_what_is_no_regular_file(self) -> None:
        os.mkfifo(self.folder / "pipe")
        self.refused(self.folder / "pipe", "is not a regular file", 3)
        self.refused("/dev/full", "is not a regular file", 3)
        self.refused(self.folder, "is not a regular file", 3)
        self.refused("", "--json needs a file name", 2)
        self.assertTrue(Path("/dev/full").is_char_device())

    def test_a_file_that_cannot_be_made_is_refused_before_anything_runs(self) -> None:
        """Also where root may write, there is a folder without files."""
        self.refused("/proc/mine.json", "cannot be written", 3)
        (self.folder / "link").symlink_to("/proc/mine.json")
        self.refused(self.folder / "link", "cannot be written", 3)
        self.refused(self.folder / "fa" / "mine.json", "cannot be made", 3)

    def test_what_is_no_file_name(self) -> None:
        self.refused("--overwrite", "'--overwrite' looks like an option; write ./--overwrite", 2)
        process = self.start(self.folder / "a.json", "--json", "b.json")
        self.assertIn("--json is given twice", process.communicate(timeout=60)[1])
        self.assertEqual((process.returncode, self.log.read_text()), (2, ""))

    def test_a_link_to_a_file_that_is_not_there_yet(self) -> None:
        (self.folder / "link").symlink_to("new/c.json")
        self.start(self.folder / "link", code=3).communicate(timeout=60)
        self.assertIn(f"--save {self.folder / 'link'}\n", self.log.read_text())
        self.assertEqual(list((self.folder / "new").iterdir()), [])

    def test_only_a_wrong_rung_is_called_wrong(self) -> None:
        for code in (1, 2, 3, 130):
            process = self.start(self.folder / "out" / "c.json", code=code)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, err)
            self.assertEqual("a rung is wrong" in err, code == 1, err)

    def test_a_signal_leaves_no_children(self) -> None:
        before = {path.name for path in self.folder.iterdir()}
        for number in (signal.SIGINT, signal.SIGTERM):
            self.log.write_text("")
            process = self.start(self.folder / "c.json", stops="explain")
            while "explain " not in self.log.read_text():
                time.sleep(0.02)
            children = self.children(process.pid)
            self.assertEqual(len(children), 1)
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
            self.assertEqual(process.returncode, 130, err)
            self.assertFalse(Path(f"/proc/{children[0]}").exists())
            self.assertEqual({path.name for path in self.folder.iterdir()}, before)

    def test_a_signal_stops_what_others_have_started(self) -> None:
        (self.folder / "bin").mkdir()
        for name in ("cmake", "bin/python", "python3"):
            (self.folder / name).write_text(OTHERS)
            (self.folder / name).chmod(0o755)
        build = ("bash", "-c", f"source '{SCRIPT.parent}/lib.sh' && configure_and_build")
        set_up = (SCRIPT.parent / "setup.sh", "python")
        for number, command, at, deaf in (
            (signal.SIGINT, build, "--preset", False),
            (signal.SIGTERM, build, "--build", True),
            (signal.SIGTERM, set_up, "pip install", False),
        ):
            self.log.write_text("")
            process = self.script(*command, stops=at, code=int(deaf))
            while not (started := self.log.read_text()).endswith("\n"):
                self.assertIsNone(process.poll(), "it ended before its build")
                time.sleep(0.02)
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn("interrupted", err)
            self.assertFalse(Path(f"/proc/{started.strip()}").exists())

    def children(self, parent: int) -> list[str]:
        return Path(f"/proc/{parent}/task/{parent}/children").read_text().split()


if __name__ == "__main__":
    unittest.main()
