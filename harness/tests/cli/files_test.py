#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""files_test.py FA SOURCE: nothing is lost. What the tool writes, refuses to write and leaves behind
when something goes wrong."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable

from cli_case import (
    ENVIRONMENT, OK, USAGE, CliCase, arguments, endless, more_than_memory, npy_bytes, run,
)  # fmt: skip

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same on a machine with a GPU

FA, SOURCE = arguments(2)
CliCase.program = FA

INTERRUPTED = 130
ON_VM = r"fa: device: PTX virtual machine \(vm\)\n"
RUN = ("run", "06", "--seq", 128)
DEEP = 200_000


class FileCase(CliCase):
    def good(self, *words: object) -> str:
        return self.fa(*RUN, *words, code=OK, out=r".*correct.*", err=ON_VM)

    def start(self, *words: object, **options: object) -> subprocess.Popen[str]:
        # Of a test that runs in the background the signal may be ignored.
        options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        return subprocess.Popen(
            [str(FA), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=self.folder, **options,
        )  # fmt: skip

    def document(self, name: str) -> dict:
        return json.loads((self.folder / name).read_text())

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


class Refusals(FileCase):
    def test_a_rung_that_computes_gradients(self) -> None:
        says = "65_turns computes gradients; --q, --k, --v and --output are for rungs that compute O"
        self.refused("run", "65", "--seq", 64, "--output", "o.npy", says=says)

    def test_empty_names(self) -> None:
        for option in ("--json", "--output", "--trace", "--q"):
            self.refused(*RUN, option, "", says=f"{option} '' is not the name of a file")
        for words in (("bench", "--json"), ("tune", "06", "--json"), ("limits", "--json"),
                      ("explain", "06", "--save"), ("compare", "05", "06", "--results")):  # fmt: skip
            self.refused(*words, "", says=f"{words[-1]} '' is not the name of a file")

    def test_a_dash_is_no_file(self) -> None:
        for words in ((*RUN, "--json"), (*RUN, "--q"), ("bench", "--json"), ("explain", "06", "--save")):
            says = f"{words[-1]} takes no standard stream; ./- is a file of that name"
            self.refused(*words, "-", says=says)
        self.good("--output", "./-")
        self.assertEqual(self.names(), {"-"})

    def test_what_is_no_regular_file(self) -> None:
        os.mkfifo(self.folder / "pipe")
        (self.folder / "null").symlink_to("/dev/null")
        for target in ("pipe", "null", "/dev/full"):
            for words in ((*RUN, "--json"), (*RUN, "--output"), (*RUN, "--trace"),
                          ("bench", "06", "--json"), ("explain", "06", "--save"),
                          ("limits", "--json")):  # fmt: skip
                self.refused(*words, target, code=ENVIRONMENT, says="not a regular file")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        self.assertTrue((self.folder / "null").is_symlink())
        self.assertEqual(self.names(), {"pipe", "null"})

    def test_an_output_is_no_other_file(self) -> None:
        ones = self.folder / "ones.npy"
        ones.write_bytes(npy_bytes((1, 1, 128, 64)))
        os.link(ones, self.folder / "hard.npy")
        (self.folder / "soft.npy").symlink_to("ones.npy")
        files = ("run", "06", "--q", ones, "--k", ones, "--v", ones)
        for name in ("ones.npy", "./ones.npy", "hard.npy", "soft.npy"):
            self.refused(*files, "--output", name, "--overwrite", says="is the file of --q")
        self.assertEqual(ones.read_bytes(), npy_bytes((1, 1, 128, 64)))
        both = ("--output", "o", "--json", "./o")
        self.refused(*RUN, *both, says="--json './o' is the file of --output")

    def test_foreign_files_need_overwrite(self) -> None:
        notes = self.folder / "notes"
        for option in ("--output", "--trace", "--json"):
            notes.write_text("my notes")
            self.refused(*RUN, option, notes, says="--overwrite")
            self.assertEqual(notes.read_text(), "my notes")
            self.good(option, notes, "--overwrite")
            self.assertNotEqual(notes.read_bytes(), b"my notes")
        self.refused("limits", "--json", notes, says="exists; --overwrite replaces it")

    def test_what_a_former_run_wrote_is_continued(self) -> None:
        words = ("--trace", "t.json", "--json", "r.json")
        self.good(*words)
        self.good(*words)
        self.assertEqual(len(self.document("r.json")["rows"]), 1)
        self.good(*words, "--batch", 2)
        self.assertEqual(len(self.document("r.json")["rows"]), 2)
        self.assertEqual(self.names(), {"t.json", "r.json"})

    def test_an_array_does_not_say_what_wrote_it(self) -> None:
        for text in (npy_bytes((2, 2)), b"\x93NUMPY", npy_bytes((1, 1, 128, 64))[:200]):
            (self.folder / "o.npy").write_bytes(text)
            self.refused(*RUN, "--output", "o.npy", says="--output: 'o.npy' exists; --overwrite replaces")
            self.assertEqual((self.folder / "o.npy").read_bytes(), text)
        self.good("--output", "o.npy", "--overwrite")
        self.refused(*RUN, "--output", "o.npy", says="--overwrite")  # of the same command, too

    def test_measured_files_stay(self) -> None:
        """A committed measurement is of another device: no option writes over it."""
        measured = self.folder / "ladder.json"
        shutil.copy(SOURCE / "plots/results/h200/ladder/card1_run1.json", measured)
        before = measured.read_bytes()
        for words in ((*RUN, "--output"), (*RUN, "--trace"), (*RUN, "--json"),
                      ("explain", "06", "--seq", 128, "--save")):  # fmt: skip
            process = self.start(*words, measured)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (USAGE, ""), err)
            self.assertRegex(err, r"fa: error: .*--overwrite")
        self.assertEqual(measured.read_bytes(), before)


class Contents(FileCase):
    def test_links_and_modes_stay(self) -> None:
        self.good("--json", "real.json", "--output", "real.npy", "--trace", "real.trace")
        for name in ("json", "npy", "trace"):
            os.chmod(self.folder / f"real.{name}", 0o640)
            (self.folder / f"link.{name}").symlink_to(f"real.{name}")
        before = (self.folder / "real.trace").read_bytes()
        self.good("--json", "link.json", "--trace", "link.trace", "--heads", 1)
        self.assertEqual(len(self.document("real.json")["rows"]), 2)
        self.good("--output", "link.npy", "--overwrite")
        self.assertNotEqual((self.folder / "real.trace").read_bytes(), before)
        for name in ("json", "npy", "trace"):
            self.assertTrue((self.folder / f"link.{name}").is_symlink())
            self.assertEqual((self.folder / f"real.{name}").stat().st_mode & 0o7777, 0o640)

    def test_eight_at_once(self) -> None:
        running = [
            self.start(*RUN, "--heads", heads, "--threads", 1, "--json", "r.json")
            for heads in range(1, 9)
        ]
        for process in running:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, OK, out + err)
        heads = sorted(row["problem"]["heads"] for row in self.document("r.json")["rows"])
        self.assertEqual(heads, list(range(1, 9)))
        self.assertEqual(self.names(), {"r.json"})

    def test_the_row_says_what_was_asked(self) -> None:
        words = ("run", "09", "--seq", "128", "--json", "r.json")
        for more in ((), ("--lse",)):
            self.fa(*words, *more, code=OK, out=r".*correct.*", err=ON_VM)
        document = self.document("r.json")
        plain, with_lse = document["rows"]
        self.assertNotIn("lse", plain["problem"])
        self.assertNotIn("lse", plain["check"])
        self.assertIs(with_lse["problem"]["lse"], True)
        self.assertLessEqual(with_lse["check"]["lse"]["ratio"], 1)
        self.assertGreater(with_lse["check"]["lse"]["tolerance"], 0)
        self.assertEqual(document["generator"]["argv"], [*words, "--lse"])

    def test_explain_saves(self) -> None:
        words = ("explain", "06", "05", "--seq", "128", "--save", "c.json")
        self.fa(*words, code=OK, out=r".*correct.*correct.*")
        self.assertEqual([row["id"] for row in self.document("c.json")["rows"]], ["05", "06"])
        self.fa(*words, "--json", code=OK, out=r"\{.*\}\n")
        before = self.document("c.json")["rows"]
        self.assertEqual(len(before), 2)
        # A verdict adds nothing to them and takes nothing away.
        self.good("--json", "c.json")
        after = self.document("c.json")["rows"]
        for part in ("counts", "bound", "check", "problem"):
            self.assertEqual([row[part] for row in after], [row[part] for row in before])


class Failures(FileCase):
    def limited(self, limit: int) -> Callable[[], None]:
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    def test_the_verdict_comes_before_a_write_that_fails(self) -> None:
        self.good("--output", "o.npy")
        before = (self.folder / "o.npy").read_bytes()
        for option in ("--output", "--trace"):
            name = "o.npy" if option == "--output" else "t.json"
            process = self.start(*RUN, option, name, "--overwrite", preexec_fn=self.limited(10_000))
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, ENVIRONMENT, err)
            self.assertIn("correct\n", out)
            self.assertRegex(err, rf"cannot write '{name}': File too large")
        self.assertEqual((self.folder / "o.npy").read_bytes(), before)
        self.assertEqual(self.names(), {"o.npy"})

    def test_full_stdout(self) -> None:
        small = ("--seq", "128")
        for words in (("--version",), ("--help",), ("list",), ("list", "--json"), RUN,
                      ("explain", "06", *small), ("explain", "06", *small, "--json"),
                      ("compare", "05", "06", *small), ("tune", "06", "--static")):  # fmt: skip
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(
                    [str(FA), *map(str, words)], stdout=full, stderr=subprocess.PIPE, check=False
                )
            self.assertEqual(done.returncode, ENVIRONMENT, words)
            self.assertIn(b"error: cannot write to standard output\n", done.stderr, words)

    def test_full_stderr(self) -> None:
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [str(FA), *map(str, RUN)], stdout=subprocess.PIPE, stderr=full, check=False
            )
            self.assertEqual(done.returncode, OK)
            self.assertIn(b"correct", done.stdout)
            done = subprocess.run([str(FA), "run", "99"], stderr=full, check=False)
        self.assertEqual(done.returncode, USAGE)

    def test_closed_stdout(self) -> None:
        done = subprocess.run(
            ["sh", "-c", f"{FA} run 06 --seq 128 --json r.json >&-"],
            cwd=self.folder, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, ENVIRONMENT)
        self.assertEqual(len(self.document("r.json")["rows"]), 1)


class Hostile(FileCase):
    def test_json_nested_without_end(self) -> None:
        path = self.folder / "deep.json"
        rows = "[" * DEEP + "]" * DEEP
        for text in ("[" * DEEP, f'{{"schema": {rows}, "rows": []}}', '{"a":' * DEEP):
            path.write_text(text)
            self.refused(*RUN, "--json", path, says="nested more than 64 levels deep")
            self.refused("bench", "06", "--json", path, says="nested more than 64 levels deep")
            self.refused("compare", "05", "06", "--results", path, says="not a result file")
            self.assertEqual(path.read_text(), text)

    def test_json_without_end(self) -> None:
        with open(self.folder / "huge.json", "wb") as file:
            file.truncate(1 << 33)
        self.refused(*RUN, "--json", "huge.json", code=ENVIRONMENT, says="more than 67108864 bytes")

    def test_arrays(self) -> None:
        good = self.folder / "good.npy"
        good.write_bytes(npy_bytes((1, 1, 128, 64)))
        long = self.folder / "long.npy"
        long.write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
        os.truncate(long, 5 << 30)  # it takes no room
        os.mkfifo(self.folder / "pipe.npy")
        large = npy_bytes((1, 1, 128, 64)).replace(b"128, 64), }    ", b"16777216, 128)}")
        (self.folder / "large.npy").write_bytes(large)
        for name, says in (("long.npy", "the header has 4294967295 bytes"),
                           ("pipe.npy", "not a regular file"), ("large.npy", "needs more than")):  # fmt: skip
            words = ("--q", good, "--k", self.folder / name, "--v", good)
            self.refused("run", "06", *words, says=says)

    def test_memory_is_asked_before_it_is_taken(self) -> None:
        for words in (("--batch", 1024, "--heads", 1024, "--seq", 131072), more_than_memory()):
            says = rf"fa: error: B={words[1]} [^\n]* needs \d+ bytes of host memory for [^\n]*, \d+ are available\n"
            for command in ("run", "explain"):
                start = time.monotonic()
                err = (ON_VM if command == "run" else "") + says
                self.fa(command, "06", *words, code=ENVIRONMENT, err=err)
                self.assertLess(time.monotonic() - start, 10)


    def test_a_limit_of_the_process_is_a_limit(self) -> None:
        """What `ulimit -v` leaves is what there is."""
        limit = 1 << 30
        process = self.start(
            "run", "06", "--heads", 64, "--seq", 32768,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )  # fmt: skip
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (ENVIRONMENT, ""), err)
        said = re.search(r"needs (\d+) bytes of host memory for [^\n]*, (\d+) are available\n", err)
        self.assertIsNotNone(said, err)
        self.assertLess(int(said[2]), limit)


class Caches(FileCase):
    """Lengths and pages that promise much and hold little."""

    def test_a_page_table_is_memory_too(self) -> None:
        """The keys of this cache are few; its table, of pages of one key, has 500 GB."""
        lengths = ",".join(["1"] * 8000)
        words = ("--batch", 8000, "--heads", 1, "--seq", 1, "--seq-kv", 1 << 24, "--page", 1)
        says = rf"{ON_VM}fa: error: B=8000 [^\n]* needs \d{{12,}} bytes of host memory [^\n]*\n"
        self.fa("run", "47", *words, "--lengths", lengths, code=ENVIRONMENT, err=says)

    def test_what_lies_behind_a_length_costs_no_time(self) -> None:
        lengths = ",".join(["1"] * 64)
        words = ("--batch", 64, "--heads", 8, "--seq", 1, "--seq-kv", 1 << 24, "--page", 1024)
        start = time.monotonic()
        self.fa("run", "47", *words, "--lengths", lengths, code=OK, out=r".*correct.*", err=ON_VM)
        self.assertLess(time.monotonic() - start, 15)

    def test_sizes_that_overflow(self) -> None:
        most = ("--batch", 65535, "--heads", 65535, "--seq", 1, "--seq-kv", 1 << 30)
        for more in ((), ("--page", 1), ("--page", 1 << 30)):
            self.refused("run", "47", *most, *more, says="tiles of keys are above 2147483647")
        grown = ("--batch", 2, "--heads", 128, "--seq", 1, "--seq-kv", 1 << 30, "--page", 1 << 20)
        says = "4294967296 tiles of keys are above 2147483647"  # when both have grown
        self.refused("run", "47", *grown, "--lengths", "1,1", says=says)
        says = rf"{ON_VM}fa: error: [^\n]* needs \d+ bytes of host memory [^\n]*\n"
        self.fa("run", "45", *most, code=ENVIRONMENT, err=says)

    def test_lengths_that_are_none(self) -> None:
        shape = ("run", "46", "--seq", 1, "--seq-kv", 300, "--lengths")
        for given in ("", ",", "4,", "-1", "1.5", "Random", "random,3", "9" * 20):
            self.refused(*shape, given, says="is not a whole number from 0 to 1073741824, nor is all")
        for given, says in (
            ("301", "length 301 is not between 0 and seq_kv 300"),
            ("0", "all lengths are 0; at least one must be above"),
            ("1,1", "2 lengths for a batch of 1; one for each entry is needed"),
        ):
            self.refused(*shape, given, says=says)

    def test_files_decide_the_cache_and_have_no_pages(self) -> None:
        query, cache = self.folder / "q.npy", self.folder / "c.npy"
        query.write_bytes(npy_bytes((1, 4, 1, 64)))
        cache.write_bytes(npy_bytes((1, 2, 128, 64)))
        files = ("run", "47", "--q", query, "--k", cache, "--v", cache)
        for option, value in (("--page", 16), ("--lengths", "5"), ("--kv-heads", 2)):
            self.refused(*files, option, value, says=f"{option} cannot be combined with --q")
        odd = self.folder / "odd.npy"
        odd.write_bytes(npy_bytes((1, 3, 128, 64)))
        says = "a number of heads that divides"
        self.refused("run", "47", "--q", query, "--k", odd, "--v", odd, says=says)


class Interrupts(FileCase):
    def stop(self, process: subprocess.Popen[str], number: int) -> tuple[str, str]:
        process.send_signal(number)
        start = time.monotonic()
        out, err = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(process.returncode, INTERRUPTED, out + err)
        self.assertIn("interrupted", err)
        return out, err

    def wait_for(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def wait_for_device(self, process: subprocess.Popen[str]) -> None:
        """Until the program has named its device: signals are then caught, and work begins. Reads
        the stream itself, so that the rest is left to communicate()."""
        said = b""
        while not said.endswith(b"fa: device: PTX virtual machine (vm)\n"):
            byte = os.read(process.stderr.fileno(), 1)
            self.assertTrue(byte, said)
            said += byte

    def interrupted(self, *words: object, says: str, **options: object) -> tuple[str, re.Match]:
        """What the program prints, and says when Ctrl-C comes late enough for it: nothing tells from
        outside how far the work is, so that the signal comes later each time."""
        for delay in (0.25, 0.5, 1, 2, 4, 8, 16, 32):
            process = self.start(*words, **options)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            # Before the program catches signals, this one ends it.
            self.assertIn(process.returncode, (INTERRUPTED, -signal.SIGINT), out + err)
            if said := re.search(says, err):
                return out, said
        self.fail(err)

    def test_check_says_what_it_has(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("check", "all", "--suite", "full")
            self.wait_for_device(process)
            out, err = self.stop(process, number)
            self.assertRegex(out, r"01_base \S+ d64 +\d+ passed +0 wrong")
            self.assertRegex(out, r"not checked\n")
            self.assertIn("checked until then", err)

    def test_mutants_that_were_judged_are_shown(self) -> None:
        pairs = r"interrupted: ([1-9]\d*) of (\d+) pairs of problem and inputs"
        out, said = self.interrupted("check", "--mutants", says=pairs)
        self.assertRegex(out, r"\| mutant \|.*\n\|---.*\n\| `honest` \| [^|]* \| 0\.\d+ \|")
        self.assertLess(int(said[1]), int(said[2]))

    def test_explain_keeps_what_is_finished(self) -> None:
        process = self.start("explain", "ampere", "--seq", 512, "--save", "c.json")
        self.wait_for((self.folder / "c.json").exists)
        out, err = self.stop(process, signal.SIGINT)
        self.assertRegex(err, r"interrupted: [1-9]\d* of \d+ counted")
        self.assertIn("correct", out)
        rows = self.document("c.json")["rows"]
        self.assertGreaterEqual(len(rows), 1)
        self.assertTrue(all(row["status"] == "ok" for row in rows))
        self.assertEqual(self.names(), {"c.json"})

    def test_a_long_run_stops(self) -> None:
        process = self.start("run", "06", "--seq", 16384, "--json", "r.json", "--output", "o.npy")
        self.wait_for_device(process)
        self.stop(process, signal.SIGINT)
        self.assertEqual(self.names(), set())

    def test_a_kernel_that_never_ends_is_named(self) -> None:
        text = (FA.parent / "ptx" / "06_batched.ptx").read_text(encoding="utf-8")
        (self.folder / "06.ptx").write_text(endless(text), encoding="utf-8")
        environment = {**os.environ, "FA_PTX_DIR": str(self.folder)}
        running = r"fa_06_batched_d128 on B=[^\n]* was stopped after \d+ instructions\n"
        for command, says in (
            ("run", ""),
            ("check", "this is what was checked until then; "),
            ("explain", "0 of 1 counted; "),
        ):
            words = (command, "06", "--threads", 1, "--max-steps", 1 << 60)
            self.interrupted(*words, says=f"fa: interrupted: {says}{running}", env=environment)

    def test_what_was_ignored_stays_ignored(self) -> None:
        process = self.start(
            *RUN, "--heads", 8, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
        )
        self.wait_for_device(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, OK, err)
        self.assertIn("correct", out)


if __name__ == "__main__":
    sys.exit(run(__name__))
