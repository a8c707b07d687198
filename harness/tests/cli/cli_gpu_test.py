#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cli_gpu_test.py FA SOURCE: the commands that run kernels. Skipped (77) where there is no GPU."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

from cli_case import (
    ENVIRONMENT, OK, USAGE, CliCase, arguments, more_than_memory, npy_bytes, run,
)  # fmt: skip

FA, SOURCE = arguments(2)
CliCase.program = FA

DEVICE = r"fa: device: [^\n]+ \(gpu\)\n"


class List(CliCase):
    def test_refused_is_what_run_refuses(self) -> None:
        listed = json.loads(self.fa("list", "06", "39", "80", "--json", code=OK, out=r".+"))
        for rung in listed["rungs"]:
            reason = rung["instances"][0]["refused"]
            if reason:
                err = f".*{re.escape(reason)}.*"
                self.fa("run", rung["id"], code=ENVIRONMENT, err=err)
            else:
                self.fa("run", rung["id"], "--no-time", code=OK, out=r".*correct.*", err=DEVICE)


class Run(CliCase):
    def test_verdict_and_time(self) -> None:
        self.fa(
            *("run", "06", "--batch", 2, "--seq", 256, "--dim", 64),
            code=OK,
            out=r"06_batched \S+ on B=2 [^\n]+\ncorrect\nerror [^\n]+rows verified\n[^\n]+TFLOPS[^\n]+\n",
            err=DEVICE,
        )

    def test_no_time(self) -> None:
        out = self.fa("run", "1", "--no-time", code=OK, out=r".*correct.*", err=DEVICE)
        self.assertNotIn("TFLOPS", out)

    def test_launch_only(self) -> None:
        self.fa("run", "1", "--launch-only", code=OK, out=r".*not verified\n", err=DEVICE)

    def test_tile(self) -> None:
        self.fa("run", "01", "--tile", "64x32w2", "--no-time", code=OK, out=r".*64x32w2.*", err=DEVICE)

    def test_files(self) -> None:
        ones = self.folder / "ones.npy"
        ones.write_bytes(npy_bytes((1, 2, 128, 64)))
        self.fa(
            *("run", "06", "--q", ones, "--k", ones, "--v", ones, "--output", "o.npy", "--no-time"),
            code=OK,
            out=r".*correct.*",
            err=DEVICE,
        )
        # Equal scores and V = 1: O = 1 exactly.
        self.assertEqual((self.folder / "o.npy").read_bytes()[-8:], b"\x00\x3c" * 4)

    def test_json_grows_and_refuses_another_policy(self) -> None:
        words = ("run", "06", "--seq", 256, "--json", "r.json")
        self.fa(*words, code=OK, out=r".+", err=r".+")
        self.fa(*words, "--batch", 3, code=OK, out=r".+", err=r".+")
        document = json.loads((self.folder / "r.json").read_text())
        self.assertEqual([row["problem"]["batch"] for row in document["rows"]], [1, 3])
        self.fa(*words, "--seed", 5, code=USAGE, err=r".*--overwrite.*")

    def test_memory(self) -> None:
        self.fa(
            *("run", "06", "--batch", 60000, "--heads", 60000, "--seq", 1 << 20),
            code=ENVIRONMENT,
            err=DEVICE + r"fa: error: [^\n]*needs \d+ bytes[^\n]*are free[^\n]*\n",
        )

    def test_a_rung_of_several_launches(self) -> None:
        for rung, launches in (("a0", 3), ("a5", 2)):
            path = self.folder / f"{rung}.json"
            self.fa(*("run", rung, "--batch", 1, "--heads", 2, "--seq", 512, "--dim", 64),
                    *("--json", path), code=OK, out=r".*correct.*TFLOPS.* ms fa_.*",
                    err=DEVICE)  # fmt: skip
            (row,) = json.loads(path.read_text())["rows"]
            self.assertEqual(len(row["launches"]), launches)
            self.assertGreater(row["peak_bytes"], 4 * 2 * 512 * 64 * 4)


class Check(CliCase):
    def test_one_rung(self) -> None:
        self.fa(
            *("check", "06", "--no-ablations"),
            code=OK,
            out=r"(06_batched \S+ d\d+ +\d+ passed +0 wrong [^\n]* ok\n)+",
            err=DEVICE,
        )


class Bench(CliCase):
    def test_file_and_resume(self) -> None:
        words = ("bench", "06", "--batch", 1, "--heads", 2, "--seqs", "256,512", "--rounds", 1,
                 "--no-ablations", "--json", "b.json")  # fmt: skip
        self.fa(*words, code=OK, out=r".*TFLOPS.*ok\n", err=r".*2 ok, 0 incorrect.*0 of them kept.*")
        before = (self.folder / "b.json").read_bytes()
        self.fa(*words, code=OK, out=r".*TFLOPS.*", err=r".*2 of them kept.*")
        self.assertEqual((self.folder / "b.json").read_bytes(), before)
        row = json.loads(before)["rows"][0]
        self.assertEqual((row["status"], row["id"]), ("ok", "06"))

    def start(self, *words: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(FA), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder,
        )  # fmt: skip

    def test_processes_share_a_file(self) -> None:
        words = ("bench", "06", "--batch", 1, "--heads", 2, "--rounds", 1, "--no-ablations",
                 "--json", "b.json", "--seqs")  # fmt: skip
        running = [self.start(*words, seq) for seq in (256, 512, 1024, 2048)]
        for process in running:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, OK, out + err)
        rows = json.loads((self.folder / "b.json").read_text())["rows"]
        self.assertEqual(sorted(row["problem"]["seq_q"] for row in rows), [256, 512, 1024, 2048])

    def test_an_interrupt_leaves_what_is_finished(self) -> None:
        path = self.folder / "b.json"
        process = self.start("bench", "ampere", "--seqs", "512,8192,16384", "--json", path)
        end = time.monotonic() + 120
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertRegex(err, r"interrupted; [1-9]\d* ok, 0 incorrect, 0 failed")
        rows = json.loads(path.read_text())["rows"]
        self.assertIn(512, {row["problem"]["seq_q"] for row in rows})
        self.assertLess(len({row["problem"]["seq_q"] for row in rows}), 3)
        self.assertEqual(list(self.folder.iterdir()), [path])

    def test_host_memory(self) -> None:
        """It may fit on the GPU."""
        self.fa("run", "06", *more_than_memory(), code=ENVIRONMENT,
                err=DEVICE + r"fa: error: [^\n]*needs \d+ bytes of (GPU|host) memory[^\n]*\n")  # fmt: skip


class Tune(CliCase):
    def test_sweep(self) -> None:
        words = ("tune", "06", "--seq", 512, "--batch", 1, "--heads", 2, "--rounds", 1,
                 "--json", "t.json")  # fmt: skip
        out = self.fa(*words, code=OK, out=r".*tile .*limited by.*", err=r".*, 0 incorrect, .*")
        self.assertEqual(out.count(", best"), 1)
        self.assertEqual(out.count("the rung's own"), 1)
        rows = json.loads((self.folder / "t.json").read_text())["rows"]
        self.assertGreaterEqual(len(rows), 3)
        self.assertEqual(len({row["variant"] for row in rows}), len(rows))
        for row in rows:
            self.assertEqual(row["status"], "ok")
            self.assertGreater(row["time_ms"]["median"], 0)
            self.assertGreaterEqual(row["resources"]["blocks_per_sm"], 1)
        (fastest,) = (line for line in out.splitlines() if ", best" in line)
        best = min(rows, key=lambda row: row["time_ms"]["median"])
        self.assertTrue(fastest.startswith(best["variant"]), fastest)

    def test_one_tile(self) -> None:
        out = self.fa(
            *("tune", "06", "--seq", 512, "--batch", 1, "--rounds", 1, "--tiles", "256x64w8"),
            code=OK,
            out=r".*256x64w8.*ok, best\n",
            err=r".*1 ok, 0 incorrect.*",
        )
        self.assertNotIn("128x64w4", out)


class Limits(CliCase):
    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(FA), "limits", "--json", "l.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=self.folder,
        )  # fmt: skip

    def test_an_interrupt_leaves_whole_rounds(self) -> None:
        start = time.monotonic()
        whole = self.start()
        out, err = whole.communicate(timeout=300)
        self.assertEqual(whole.returncode, OK, out + err)
        seconds = time.monotonic() - start
        (self.folder / "l.json").unlink()
        process = self.start()
        time.sleep(0.85 * seconds)  # in the last of three rounds
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        rounds = int(re.search(r"interrupted: (\d) of 3 rounds were complete", err)[1])
        self.assertGreaterEqual(rounds, 1)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["l.json"])
        document = json.loads((self.folder / "l.json").read_text())
        self.assertEqual(document["policy"]["rounds"], rounds)
        for row in document["rows"]:
            self.assertIn(row["id"], out)
            self.assertIn(row["status"], ("ok", "unsupported"))

    def test_an_interrupt_before_a_round_leaves_no_file(self) -> None:
        process = self.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    probe = subprocess.run(
        [FA, "run", "01", "--device", "gpu", "--launch-only"], capture_output=True, text=True
    )
    if "no GPU found" in probe.stderr:
        print("skipped: no GPU")
        sys.exit(77)
    sys.exit(run(__name__))
