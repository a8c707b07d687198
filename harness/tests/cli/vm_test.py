#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""vm_test.py FA SOURCE: the commands that run in the virtual machine."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli_case import ENVIRONMENT, OK, USAGE, WRONG, CliCase, arguments, endless, run

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same on a machine with a GPU

FA, SOURCE = arguments(2)
CliCase.program = FA

ON_VM = r"fa: device: PTX virtual machine \(vm\)\n"
SMALL = ("--seq", 256)
BUILD_PTX = FA.parent / "ptx"


class Run(CliCase):
    def test_options(self) -> None:
        texts = set()
        more = ("--max-steps", 1 << 40)
        for options in ((), ("--threads", 1), ("--reversed",), ("--no-checkers",), more):
            out = self.fa("run", "06", *SMALL, *options, code=OK, out=r".*correct.*", err=ON_VM)
            texts.add(out)
        self.assertEqual(len(texts), 1, "the result depends on how the machine runs")
        self.refused("run", "06", "--threads", 0, says="--threads '0' is not a whole number")
        says = "06_batched: dtype float32 is not its float16"
        self.refused("run", "06", "--dtype", "float32", says=says)

    def test_gradients_of_a_packed_batch(self) -> None:
        words = ("--query-lengths", "70,0,5", "--lengths", "90,3,5", "--layout", "bnhd", "--causal")
        self.fa("run", "71", *words, "--device", "vm", code=OK, out=r".*correct.*", err=ON_VM)
        says = "70_ordered takes contiguous tensors only, takes no packed batch; 71, 72, 73 do"
        self.refused("run", "70", *words, says=says)
        self.refused("run", "71", "--batch", 2, "--lengths", "9,5", says="no lengths but those of a")

    def test_output_and_json(self) -> None:
        words = ("run", "06", *SMALL, "--device", "vm", "--json", "r.json", "--output", "o.npy")
        self.fa(*words, code=OK, out=r".*correct.*", err=ON_VM)
        self.assertEqual((self.folder / "o.npy").read_bytes()[:6], b"\x93NUMPY")
        document = json.loads((self.folder / "r.json").read_text())
        self.assertEqual(document["device"]["kind"], "vm")
        (row,) = document["rows"]
        self.assertEqual(row["status"], "ok")
        self.assertTrue(row["check"]["repeatable"])
        for measured in ("time_ms", "tflops", "tflops_back_to_back", "gbs", "clock_mhz"):
            self.assertIsNone(row[measured])
        self.assertNotIn("inputs", row["problem"])
        self.assertNotIn("spread", row["problem"])

    def test_inputs_are_part_of_the_row(self) -> None:
        words = ("run", "06", *SMALL, "--device", "vm", "--json", "r.json")
        self.fa(*words, code=OK, out=r".*correct.*", err=ON_VM)
        other = ("--inputs", "spike", "--spread", 2.5)
        self.fa(*words, *other, code=OK, out=r".*, spike, spread 2.5\n.*correct.*", err=ON_VM)
        first, second = json.loads((self.folder / "r.json").read_text())["rows"]
        self.assertEqual(second["problem"], first["problem"] | {"inputs": "spike", "spread": 2.5})

    def test_trace(self) -> None:
        self.fa("run", "06", *SMALL, "--trace", "t.json", code=OK, out=r".*correct.*", err=ON_VM)
        events = json.loads((self.folder / "t.json").read_text())
        events = events["traceEvents"] if isinstance(events, dict) else events
        self.assertGreater(len(events), 100)
        says = "--trace: cannot write 'none/t.json'"
        self.refused("run", "06", "--trace", "none/t.json", code=ENVIRONMENT, says=says)
        self.refused("run", "06", "--trace", "t.json", "--device", "gpu", says="--trace cannot be")

    def test_too_large(self) -> None:
        words = ("run", "06", "--batch", 60000, "--heads", 60000, "--seq", 65536)
        self.fa(*words, code=ENVIRONMENT, err=ON_VM + r"fa: error: [^\n]*bytes of host memory[^\n]*\n")


class Ptx(CliCase):
    """The folder of the PTX, and what is in it."""

    def test_missing(self) -> None:
        for folder, says in (("/nowhere", "/nowhere cannot be read"), (self.folder, "none of the 0")):
            self.fa(
                *("run", "06"),
                code=ENVIRONMENT,
                err=ON_VM + rf"fa: error: [^\n]*{says}[^\n]*FA_PTX_DIR[^\n]*\n",
                FA_PTX_DIR=str(folder),
            )

    def test_what_is_not_ptx_is_one_error(self) -> None:
        text = (BUILD_PTX / "06_batched.ptx").read_text(encoding="utf-8")
        broken = text.replace("ret;", "retreat;")
        (self.folder / "06_batched.ptx").write_text(broken, encoding="utf-8")
        self.fa(
            *("run", "06"),
            code=ENVIRONMENT,
            err=ON_VM + r"fa: error: (?!error)[^\n]*06_batched.ptx:\d+[^\n]*\n",
            FA_PTX_DIR=str(self.folder),
        )

    def test_a_kernel_that_leaves_its_buffer_is_wrong(self) -> None:
        environment = self.broken(self.move_stores)
        out = self.fa(
            *("run", "06", *SMALL),
            code=WRONG,
            out=r".*wrong: fa_06_batched_d128: [^\n]*out of bounds.*06_batched.ptx:\d+.*06_batched.cu.*",
            err=ON_VM,
            **environment,
        )
        self.assertIn("'O'", out)
        self.assertNotIn("rows verified", out)
        # What is wrong stands in the order of the cases, however many find it.
        printed = {
            self.fa(
                *("check", "06", "--no-ablations", "--threads", threads),
                code=WRONG,
                out=r".*wrong: 06_batched .*out of bounds.*",
                err=ON_VM,
                **environment,
            )
            for threads in (1, 4)
        }
        self.assertEqual(len(printed), 1)

    def broken(self, change: Callable[[str], str]) -> dict[str, str]:
        """The environment in which 06 is another kernel."""
        text = (BUILD_PTX / "06_batched.ptx").read_text(encoding="utf-8")
        changed = change(text)
        self.assertNotEqual(changed, text)
        (self.folder / "06_batched.ptx").write_text(changed, encoding="utf-8")
        return {"FA_PTX_DIR": str(self.folder)}

    def test_one_mistake_is_shown_once(self) -> None:
        """Its findings are those of every case; each is shown where it is first seen."""
        entry = re.compile(r"(\.entry (?:(?!\.entry ).)*?)bar\.sync[^\n]*\n", re.DOTALL)
        environment = self.broken(lambda text: entry.sub(r"\1\n", text))
        out = self.fa("check", "06", code=WRONG, out=r".+", err=ON_VM, **environment)
        self.assertLess(len(out.splitlines()), 150)
        shown = re.findall(r"^race: .*\n.*\n.*\n  note: (from .*)", out, re.MULTILINE)
        self.assertGreater(len(shown), 0)
        self.assertEqual(len(shown), len(set(shown)))
        groups = re.findall(
            r"^06_batched: race at (.*): in (\d+) cases, the first: 06_batched \S+ d\d+ at B=",
            out, re.MULTILINE,
        )  # fmt: skip
        self.assertEqual({f"from {place}" for place, _ in groups}, set(shown))
        wrong = sum(int(count) for count in re.findall(r"(\d+) wrong", out))
        self.assertLessEqual(max(int(count) for _, count in groups), wrong)

    def test_a_kernel_that_never_ends(self) -> None:
        environment = self.broken(endless)
        limit = r"fa_06_batched_d128: the launch has executed more than 300000 instructions"
        says = rf".*wrong: {limit}, which is the limit; --max-steps allows more\n.* is at line \d+, bra.*"
        words = ("06", "--max-steps", 300000)
        for command in ("run", "explain"):
            self.fa(command, *words, "--seq", 128, code=WRONG, out=says, **environment,
                    err=ON_VM if command == "run" else "")  # fmt: skip
        # Every case has its verdict, and those of the same kernel have one text.
        out = self.fa("check", *words, "--no-ablations", code=WRONG, out=r".+", err=ON_VM, **environment)
        self.assertEqual(len(re.findall(limit, out)), 1)
        self.assertRegex(out, r"06_batched: step limit at [^\n]*: in \d+ cases, the first: 06_batched ")
        self.assertRegex(out, r"06_batched \S+ d128 +0 passed +\d\d wrong +0 refused  no output to compare  wrong")
        self.refused("run", *words[:2], 0, says="--max-steps '0' is not a whole number")

    def test_an_output_that_nobody_writes_has_no_error(self) -> None:
        environment = self.broken(lambda text: re.sub(r"st\.global[^\n]*\n", "\n", text))
        out = r".*wrong: batch [^\n]*: got -?nan, expected [^\n]*not finite\)\nno verified element is finite, 512 of 512 rows verified\n"
        self.fa("run", "06", *SMALL, code=WRONG, out=out, err=ON_VM, **environment)

    @staticmethod
    def move_stores(text: str) -> str:
        lines = text.splitlines()
        for i, line in enumerate(lines):
            if line.strip().startswith("st.global"):
                head, _, rest = line.partition("]")
                base, _, offset = head.partition("+")
                lines[i] = f"{base}+{int(offset or 0) + (1 << 24)}]{rest}"
        return "\n".join(lines) + "\n"


class Check(CliCase):
    def test_one_rung(self) -> None:
        words = ("check", "02", "--no-ablations", "--device", "vm")
        self.fa(*words, code=OK, out=r"(02_swizzle [^\n]* 0 wrong [^\n]* ok\n){2}", err=ON_VM)

    def test_every_rung_fits_the_machine(self) -> None:
        self.fa(*("check", "07"), code=ENVIRONMENT, err=ON_VM + WITHOUT_07,
                FA_PTX_DIR=folder_without_07(self.folder))  # fmt: skip

    def test_an_error_leaves_what_was_checked(self) -> None:
        self.fa(*("check", "06", "07"), code=ENVIRONMENT, err=ON_VM + WITHOUT_07,
                out=r"(06_batched \S+ d\d+ +\d+ passed[^\n]*\n)+(07_dbuf [^\n]*not checked\n)+",
                FA_PTX_DIR=folder_without_07(self.folder))  # fmt: skip


WITHOUT_07 = r"fa: error: [^\n]*fa_07_dbuf[^\n]*\n"


def folder_without_07(folder: Path) -> str:
    shutil.copytree(BUILD_PTX, folder / "ptx")
    (folder / "ptx" / "07_dbuf.ptx").unlink()
    return str(folder / "ptx")


def document(case: CliCase, *words: object) -> dict[str, Any]:
    return json.loads(case.fa("explain", *words, "--json", code=OK, out=r".+"))


class Explain(CliCase):
    def test_table(self) -> None:
        out = self.fa("explain", "01", *SMALL, code=OK, out=r".+")
        for words in ("01_base 64x32w2", "correct", "ldmatrix", "tensor *", "fa_01_base_d128"):
            self.assertIn(words, out)
        # 8-way: wavefronts, ideal, conflicts, ways
        self.assertRegex(out, r"\nldmatrix +[\d ]+ 8 +20\.000\n")

    def test_json(self) -> None:
        (row,) = document(self, "06", *SMALL)["rows"]
        counts = row["counts"]
        self.assertEqual(counts["tensor"], 4 * 2 * 256 * 256 * 128 // 4096)
        self.assertEqual(counts["ldmatrix_wavefronts"], counts["ldmatrix_ideal"])
        self.assertNotIn("lines", row)

    def test_begins_with_the_bound(self) -> None:
        out = self.fa("explain", "01", *SMALL, code=OK, out=r".+").splitlines()
        self.assertRegex(out[1], r"^bound by shared memory: [\d ]+ clocks of each of the 132 SMs ")
        self.assertRegex(" ".join(out[1:3]), r"busy meanwhile: .*tensor cores [78]%")
        self.assertRegex(out[3], r"^With 8 thread blocks 124 SMs are idle")
        out = self.fa("explain", "a0", "--seq", 128, "--dim", 64, code=OK, out=r".+").splitlines()
        self.assertRegex(out[1], r"^bound by shared memory in \d+%, device memory in \d+% of ")
        at = next(i for i, line in enumerate(out) if line.startswith("fa_a0_standard_softmax:"))
        self.assertRegex(out[at + 1], r"^  device memory, \d+ clocks; busy meanwhile: L2 \d+%")

    def test_what_the_chapters_say_bounds_a_rung(self) -> None:
        forward = ("--seq", 1024, "--dim", 128)
        decode = ("--batch", 2, "--heads", 32, "--kv-heads", 8, "--seq", 1, "--seq-kv", 4096)
        for words, launches in (
            # The products by shared memory; the softmax between them moves bytes.
            (("a0", "--seq", 1024, "--dim", 64), ["shared_memory", "l2", "shared_memory"]),
            (("a3", *forward), ["shared_memory"]),
            (("01", *forward), ["shared_memory"]),
            (("02", *forward), ["shared_memory"]),  # the wavefronts of Q, K and V without conflicts
            (("06", *forward), ["tensor_cores"]),
            (("32", *forward), ["tensor_cores"]),
            (("40", *decode), ["l2"]),  # each query head of a group reads K and V
            (("43", *decode), ["issue_slots"]),
            (("45", *decode), ["device_memory"]),
            (("49", *decode), ["device_memory"]),
            (("51", *decode), ["device_memory"]),
        ):
            (row,) = document(self, *words)["rows"]
            with self.subTest(rung=words[0]):
                bound = row["bound"]
                self.assertEqual([each["resource"] for each in bound["launches"]], launches)
                most = [max(each["clocks"].values()) for each in bound["launches"]]
                self.assertAlmostEqual(bound["clocks"] / sum(most), 1, 4)
                self.assertIn(bound["resource"], launches)

    def test_the_limits_are_read_when_they_are_asked_for(self) -> None:
        words = ("01", "--seq", 64, "--dim", 64)
        limits = json.loads((SOURCE / "plots/results/h200/limits.json").read_text())
        limits["device"] |= {"name": "Another Card", "sms": 2 * limits["device"]["sms"]}
        (before,) = document(self, *words)["rows"]
        chosen = self.folder / "limits.json"
        chosen.write_text(json.dumps(limits))
        self.environment = {"FA_LIMITS": str(chosen)}
        (after,) = document(self, *words)["rows"]
        self.assertEqual(after["bound"]["card"], "Another Card")
        self.assertAlmostEqual(before["bound"]["clocks"] / after["bound"]["clocks"], 2, 3)
        for text in ("{}", "no JSON"):
            chosen.write_text(text)
            says = r"limits.json: holds no limits of a card [^\n]*set FA_LIMITS to a file"
            err = rf"fa: error: [^\n]*{says}[^\n]*\n"
            self.fa("explain", *words, code=ENVIRONMENT, err=err)

    def test_clocks_are_counts_at_the_committed_limits(self) -> None:
        limits = json.loads((SOURCE / "plots/results/h200/limits.json").read_text())
        per_clock = {row["id"]: row["per_clock_sm"] for row in limits["rows"]}
        for rung, product in (("06", "mma_sync"), ("32", "attention_registers")):
            (row,) = document(self, rung, "--seq", 256, "--dim", 128)["rows"]
            bound, counts = row["bound"], row["counts"]
            self.assertEqual(bound["card"], limits["device"]["name"])
            clocks, sms = bound["launches"][0]["clocks"], limits["device"]["sms"]
            wavefronts = sum(
                counts.get(name, 0)
                for name in (
                    "ldmatrix_wavefronts",
                    "shared_load_wavefronts",
                    "shared_store_wavefronts",
                    "shared_copy_requests",
                    "wgmma_wavefronts",
                )
            )
            sectors = sum(value for name, value in counts.items() if name.endswith("_sectors"))
            operands = counts["move"] + counts["load_param"]
            tensors = 4 * 2 * 256 * 128 * 2  # Q, K, V and O of two heads
            counter = 4 if rung == "32" else 0  # of the tiles that thread blocks draw
            for name, expected in {
                "tensor_cores": 4 * 2 * 256 * 256 * 128 / per_clock[product],
                "exponentials": 32 * (counts["exp"] + counts.get("special", 0)) / per_clock["ex2"],
                "fp32": 64 * counts["float"] / per_clock["fma"],
                "shared_memory": 128 * wavefronts / per_clock["shared_load"],
                "l2": 32 * sectors / per_clock["l2_read"],
                "device_memory": (tensors + counter) / per_clock["memory_read"],
                "issue_slots": (counts["instructions"] - operands) / 4,
            }.items():
                self.assertAlmostEqual(clocks[name] / (expected / sms), 1, 3, f"{rung} {name}")

    def test_inputs(self) -> None:
        (row,) = document(self, "06", *SMALL, "--inputs", "rising")["rows"]
        self.assertEqual(row["problem"]["inputs"], "rising")
        self.assertEqual(row["status"], "ok")

    def test_dims_and_ablations(self) -> None:
        rows = document(self, "06", *SMALL, "--dim", "128,64", "--ablations")["rows"]
        self.assertEqual([row["problem"]["head_dim"] for row in rows], [128, 128, 128, 64])
        self.assertEqual([row["ablation"] for row in rows], [False, True, True, False])

    def test_lines_add_up(self) -> None:
        for rung in ("06", "a0", "32"):
            (row,) = document(self, rung, *SMALL, "--by-line")["rows"]
            for name, all_lines in row["counts"].items():
                lines = sum(line["counts"].get(name, 0) for line in row["lines"])
                # Shared memory that wgmma reads is rounded down in each line.
                close = max(len(row["lines"]), 1) if name == "wgmma_wavefronts" else 0
                self.assertAlmostEqual(lines, all_lines, delta=close, msg=f"{rung} {name}")

    def test_the_margin_shows_every_instruction(self) -> None:
        for rung in ("06", "a0"):
            words = ("explain", rung, *SMALL, "--by-line")
            out = self.fa(*words, code=OK, out=r".+")
            (row,) = document(self, rung, *SMALL)["rows"]
            shown = [line.partition(" |")[0][:10] for line in out.splitlines() if " |" in line]
            counted = sum(int(cell) for cell in shown if cell.strip().isdigit())
            self.assertEqual(counted, row["counts"]["instructions"])
            self.assertIn("    of no line of this file\n", out)

    def test_margin_is_the_source(self) -> None:
        out = self.fa("explain", "06", *SMALL, "--by-line", code=OK, out=r".+")
        source = (SOURCE / "kernels/ampere/06_batched.cu").read_text(encoding="utf-8")
        shown = [line.partition("|")[2][7:] for line in out.splitlines() if " |" in line]
        self.assertEqual(shown.pop(), "no line of this file")
        self.assertEqual([line.rstrip() for line in shown[1:]], source.splitlines())
        for line in out.splitlines():
            if "mma_m16n8k16(" in line:
                self.assertRegex(line.split("|")[0], r"\d+ +\d+", line)

    def test_bad_words(self) -> None:
        self.refused("explain", says="rungs")
        self.refused("explain", "99", says="rung '99' is unknown")
        self.refused("explain", "06", "--dim", "96", says="head_dim 96 is not one of 64, 128")
        self.refused("explain", "06", "--dim", "64,64", says="names 64 twice")
        self.refused("explain", "06", "--tile", "1x1w1", says="tile 1x1w1 is not one of")
        self.refused("explain", "06", "--seq", "100", says="not a multiple")
        self.refused("explain", "06", "--causal", says="causal")

    def test_rows_of_what_was_counted_before_an_error(self) -> None:
        words = ("explain", "06", "07", *SMALL, "--json", "--save", "c.json")
        out = self.fa(*words, code=ENVIRONMENT, out=r".+", err=WITHOUT_07,
                      FA_PTX_DIR=folder_without_07(self.folder))  # fmt: skip
        for text in (out, (self.folder / "c.json").read_text()):
            rows = json.loads(text)["rows"]
            self.assertEqual([(row["id"], row["status"]) for row in rows], [("06", "ok")])

    def test_what_the_host_has_no_memory_for_is_a_row(self) -> None:
        # One key too many for the tiles of 06, which refuses it and needs no memory.
        words = ("explain", "06", "09", "--batch", 1024, "--heads", 1024, "--seq", 131073)
        err = r"fa: error: B=1024 [^\n]* bytes of host memory [^\n]*\n"
        out = self.fa(*words, "--json", "--save", "c.json", code=ENVIRONMENT, out=r".+", err=err)
        for text in (out, (self.folder / "c.json").read_text()):
            rows = json.loads(text)["rows"]
            states = [(row["id"], row["status"]) for row in rows]
            self.assertEqual(states, [("06", "unsupported"), ("09", "out_of_memory")])
            self.assertIn("bytes of host memory", rows[1]["reason"])
        out = self.fa(*words, code=ENVIRONMENT, out=r".+", err=err)
        self.assertRegex(out, r"09_ragged [^\n]*\nout of memory: B=1024 [^\n]*\n")

    def test_a_family_may_hold_a_rung_that_refuses(self) -> None:
        out = self.fa("explain", "all", "--seq", 64, code=OK, out=r".+")
        self.assertIn("unsupported: ", out)
        self.assertIn("correct", out)


class Compare(CliCase):
    def test_counts_and_times(self) -> None:
        out = self.fa("compare", "05@128x64w4", "06", *SMALL, code=OK, out=r".+")
        self.assertRegex(out, r"\nldmatrix \* +[\d ]+ 0\.\d{3}\n")
        self.assertRegex(out, r"TFLOPS measured on NVIDIA [^\n]*, not on this machine")

    def test_rungs_against_a_cache(self) -> None:
        shape = ("--seq", 1, "--seq-kv", 300, "--heads", 8, "--kv-heads", 2)
        out = self.fa("compare", "40", "41", *shape, code=OK, out=r"B=1 H=8/2.*Nq=1 .+")
        self.assertRegex(out, r"\nload_global \* +[\d ]+")
        self.assertRegex(out, r"\nthe same as load_global \*: global_load_requests\n")

    def test_rungs_of_two_types_are_named_with_theirs(self) -> None:
        out = self.fa("compare", "a3", "01", *SMALL, code=OK, out=r".+")
        first = out.splitlines()[0]
        self.assertRegex(first, r"^B=1 [^,]* float32, beside B=1 [^,]* float16$")

    def test_what_changed_most_is_first_and_what_is_equal_is_folded(self) -> None:
        out = self.fa("compare", "05@128x64w4", "06", *SMALL, code=OK, out=r".+")
        counts = out.split("\n* ")[0].splitlines()
        self.assertRegex(counts[1], r"^05_exp2f@128x64w4 bound by [\w ]+: [\d ]+ clocks of each of ")
        self.assertTrue(any(line.startswith("06_batched bound by ") for line in counts[2:6]))
        self.assertLessEqual(max(map(len, counts)), 100)
        names = [line.partition("  ")[0] for line in counts]
        self.assertNotIn("ldmatrix_requests", names)
        self.assertIn("the same as ldmatrix *: ldmatrix_requests", counts)
        ratios = [float(m[1]) for line in counts if (m := re.search(r" (\d+\.\d{3})$", line))]
        distances = [abs(math.log(ratio)) for ratio in ratios if ratio]
        self.assertEqual(distances, sorted(distances, reverse=True))
        self.assertNotIn(1.0, ratios)
        self.assertIn("equal: ", out)
        self.assertIn("tensor *", " ".join(out.partition("equal: ")[2].split("\n* ")[0].split()))

    def test_every_count_has_a_row_for_programs(self) -> None:
        words = ("compare", "05@128x64w4", "06", *SMALL, "--format", "csv")
        rows = self.fa(*words, code=OK, out=r".+").splitlines()
        names = [row.split(",")[1] for row in rows if row.startswith("B=1 ")]
        self.assertTrue({"ldmatrix *", "ldmatrix_requests", "ldmatrix_ideal"} <= set(names))

    def test_rates_have_one_dtype_a_heading(self) -> None:
        out = self.fa("compare", "05@128x64w4", "06", *SMALL, code=OK, out=r".+")
        number = r"[\d.]+"
        self.assertRegex(out, rf"D=128 float16 +{number} +{number} +{number}\n")
        for heading in re.findall(r"TFLOPS measured on [^\n]*", out):
            self.assertRegex(heading, r"\(plots/results/[\w/.]+(, one of \d+ runs)?, commit \w+\), float16$")

    def own_file(self, name: str, factor: float) -> Path:
        document = json.loads((SOURCE / "plots/results/h200/ladder/card1_run1.json").read_text())
        slower = [row for row in document["rows"] if row["id"] == "06" and row["tflops"]]
        for row in slower:
            row["tflops"] *= factor
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
        return path

    def test_own_files_side_by_side(self) -> None:
        before, after = self.own_file("a.json", 1), self.own_file("b.json", 1.5)
        out = self.fa("compare", "--results", before, after, code=OK, out=r".+")
        self.assertRegex(out, r"06 \S+ on B=16 [^\n]* 1\.5\n")
        self.assertRegex(out, r"\d+ of \d+ equal within 4 % or their spread\n")
        self.assertNotIn("\n05 ", out)
        only = self.fa("compare", "05", "--results", before, after, code=OK, out=r".+")
        self.assertNotIn("06 ", only.partition("TFLOPS")[2])
        text = self.fa("compare", "--results", before, after, "--format", "csv", code=OK, out=r".+")
        self.assertEqual(text.splitlines()[0], "results,kernel and problem,first,second,ratio")

    def test_bfloat16_has_a_table_of_its_own(self) -> None:
        runs = [SOURCE / f"plots/results/h200/packed/card{card}_run1.json" for card in (1, 2)]
        self.assertIn("TFLOPS, bfloat16", self.fa("compare", "--results", *runs, code=OK, out=r".+"))

    def test_own_results_are_found(self) -> None:
        self.own_file("runs/h200/deep/mine.json", 2)
        (self.folder / "runs/notes.json").write_text("[]")
        out = self.fa("compare", "05", "06", *SMALL, code=OK, out=r".+",
                      FA_RUNS_DIR=str(self.folder / "runs"))  # fmt: skip
        self.assertRegex(out, r"TFLOPS measured on [^\n]*deep/mine.json")

    def test_bad_words(self) -> None:
        own = self.own_file("a.json", 1)
        self.refused("compare", "--results", own, "none.json", says="no file 'none.json'")
        self.refused("compare", "05", says="rungs")
        three = ("--results", own, own, own)
        self.refused("compare", *three, says="--results takes at most 2 values, not 3")
        self.refused("compare", "05", "99", says="rung '99' is unknown")
        self.refused("compare", "6", "06_batched", says="06_batched is named twice; .* 06@TILE")
        self.refused("compare", "05@1x1w1", "06", says="tile 1x1w1 is not one of")
        self.refused("compare", "05", "06", "--results", "none.json", says="no file 'none.json'")
        (self.folder / "other.json").write_text("[]")
        self.refused(
            "compare", "05", "06", *SMALL, "--results", "other.json", code=USAGE, says="other.json"
        )


if __name__ == "__main__":
    sys.exit(run(__name__))
