#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cli_test.py FA LIBFA SOURCE: what the tool says and returns where no GPU is visible."""

from __future__ import annotations

import csv
import ctypes
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

from cli_case import ENVIRONMENT, OK, USAGE, WRONG, CliCase, arguments, npy_bytes, run

# Set before the library below is loaded, too: the tests are the same on a machine with a GPU.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"

FA, LIBRARY, SOURCE = arguments(3)
CliCase.program = FA

NO_GPU = r"no GPU found \(the CUDA runtime says: [^)]+\)"
ON_VM = r"fa: device: PTX virtual machine \(vm\)\n"
CORRECT = r"[^\n]*\ncorrect\nerror [^\n]*\n"


def rungs() -> list[dict]:
    done = subprocess.run([FA, "list", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rungs"]


class Basics(CliCase):
    def test_help(self) -> None:
        self.fa(
            "--help",
            code=OK,
            out=r".*list.*run.*check.*explain.*compare.*plan.*bench.*tune.*limits.*completions.*Exit codes.*",
        )
        for command in (
            "list",
            "run",
            "check",
            "explain",
            "compare",
            "plan",
            "bench",
            "tune",
            "limits",
            "completions",
        ):
            out = self.fa(command, "--help", code=OK, out=rf".*{command}.*")
            self.assertLessEqual(max(map(len, out.splitlines())), 100, command)
            self.assertNotIn("{", out)
            self.assertEqual(self.fa("help", command, code=OK, out=r".+"), out)

    def test_version(self) -> None:
        commit = r"commit (unknown|[0-9a-f]{10})( with changes)?"
        out = rf"\d+\.\d+\.\d+ \({commit}; nvcc [\d.]+; \w+ [\d.]+\)\n"
        self.fa("--version", code=OK, out=out)

    def test_help_of_a_command(self) -> None:
        self.assertEqual(self.fa("help", code=OK, out=r".+"), self.fa("--help", code=OK, out=r".+"))
        self.refused("help", "bnech", says=r"command 'bnech' is unknown \(did you mean 'bench'\?\)")
        self.assertEqual(
            self.fa("help", "help", code=OK, out=r".+"), self.fa("help", code=OK, out=r".+")
        )
        self.refused("help", "run", "06", says="help takes one command, not 2")

    def test_no_command(self) -> None:
        self.refused(
            says="no command given; allowed: list, run, check, explain, compare, plan, bench, tune, limits"
        )

    def test_unknown_command(self) -> None:
        self.refused("bnech", says=r"command 'bnech' is unknown \(did you mean 'bench'\?\)")
        self.refused("frobnicate", says="command 'frobnicate' is unknown; allowed: list, run")
        self.refused("version", says=r"command 'version' is unknown \(did you mean '--version'\?\)")
        self.refused("--json", says="unknown option '--json'; see fa --help")
        self.refused("--hlep", says=r"unknown option '--hlep' \(did you mean '--help'\?\)")

    def test_unknown_option(self) -> None:
        self.refused("run", "06", "--sqe", "512", says=r"'--sqe' \(did you mean '--seq'\?\)")
        self.refused("run", "06", "--sqe=512", says=r"'--sqe' \(did you mean '--seq'\?\)")
        self.refused("list", "--quiet", says="unknown option '--quiet'")
        self.refused("limits", "06", says="unexpected argument '06'")
        self.refused("run", "06", "07", says="unexpected argument '07'")

    def test_no_word_is_ignored(self) -> None:
        for words in (("run", "06", "--", "--seq", "5"), ("run", "06", "--"), ("--", "run", "06")):
            self.refused(*words, says="'--' is not understood")
        for words in (
            ("run", "06", "--causal=false"),
            ("run", "09", "--lse=3"),
            ("list", "--json=no"),
        ):
            says = rf"{words[-1].partition('=')[0]} takes no value; see fa {words[0]} --help"
            self.refused(*words, says=says)
        for words, says in (
            (("check", "--mutants", "--suite", "full"), "--suite has no effect beside --mutants"),
            (("tune", "06", "--static", "--rounds", 3), "--rounds has no effect beside --static"),
            (("tune", "06", "--static", "--seq", 512), "--seq has no effect beside --static"),
            (("plan", "06", "--sync", "--seq", 64), "--seq has no effect beside --sync"),
            (("tune", "06", "--overwrite"), "--overwrite requires --json"),
            (("explain", "06", "--tile", "64x64w4", "--ablations"), "--ablations excludes --tile"),
            (("explain", "06", "--overwrite"), "--overwrite requires --save"),
            (("list", "--json", "--format", "csv"), "--json excludes --format"),
            (("plan", "06", "--inputs", "large"), "unknown option '--inputs'"),
            (("compare", "--results", "a", "b", "--seq", 64), "--seq has no effect beside"),
            (("compare", "05", "06", "--results", "."), "--results: .*'[.]'"),
        ):
            self.refused(*words, says=says)

    def test_missing_value(self) -> None:
        self.refused("run", "06", "--seq", says="--seq needs a value; see fa run --help")
        self.refused("run", "06", "--seq", "128", "--seq", "256", says="--seq is given 2 times")
        self.refused("run", says="no rung given; see fa run --help")
        self.refused("explain", says="no rungs given; see fa explain --help")

    def test_text_has_every_rung(self) -> None:
        text = self.fa("list", code=OK, out=r".+")
        words = " ".join(text.split())
        for rung in rungs():
            self.assertIn(rung["name"], text)
            self.assertIn(" ".join(rung["idea"].split()), words)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def listed(self, *words: str) -> list[str]:
        return [
            row["id"]
            for row in json.loads(self.fa("list", *words, "--json", code=OK, out=r".+"))["rungs"]
        ]

    def test_pattern(self) -> None:
        all_rungs = rungs()
        self.assertEqual(self.listed("6"), ["06"])
        self.assertEqual(
            self.listed("hopper"), [r["id"] for r in all_rungs if r["family"] == "hopper"]
        )
        ragged = [r["id"] for r in all_rungs if r["ragged"] and r["family"] == "ampere"]
        self.assertEqual(self.listed("ragged", "ampere"), ragged)
        causal = [r["id"] for r in all_rungs if r["causal"]]
        self.assertEqual(self.listed("causal")[:3], causal[:3])
        self.assertLessEqual(set(causal), set(self.listed("causal")))
        self.assertEqual(self.listed("07", "6"), ["06", "07"])
        self.assertEqual(self.listed("31_ragged"), ["31"])
        some = self.listed("SWIZZLE")
        self.assertIn("02", some)
        self.assertLess(len(some), len(all_rungs))
        self.refused("list", "frobnicate", says="no rung has 'frobnicate' in its name")

    def test_formats(self) -> None:
        text = self.fa("list", "--format", "csv", code=OK, out=r".+")
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([row["rung"] for row in rows], [rung["name"] for rung in rungs()])
        self.assertEqual([row["idea"] for row in rows], [rung["idea"] for rung in rungs()])
        text = self.fa("list", "06", "--format", "markdown", code=OK, out=r".+")
        self.assertRegex(text, r"\| rung \|[^\n]*\|\n\|---\|[^\n]*\n\| 06_batched \|")
        self.refused(
            "list", "--format", "html", says="'html' is unknown; allowed: text, csv, markdown"
        )

    def test_json_names_files_that_exist(self) -> None:
        ids = [rung["id"] for rung in rungs()]
        self.assertEqual(len(ids), len(set(ids)))
        for rung in rungs():
            self.assertTrue((SOURCE / rung["file"]).is_file(), rung["file"])
            self.assertEqual(rung["chapter"], f"docs/{rung['name']}.md")
            self.assertTrue(rung["parent"] is None or rung["parent"] in ids)
            own = [(i["dtype"], i["head_dim"]) for i in rung["instances"] if not i["ablation"]]
            self.assertEqual(len(own), len(set(own)))
            self.assertEqual(sorted({dim for _, dim in own}), rung["head_dims"])

    def test_json_is_json_only(self) -> None:
        self.assertEqual(json.loads(self.fa("list", "--json", code=OK, out=r".+"))["schema"], 1)


class Plan(CliCase):
    def test_the_launches_of_a_rung(self) -> None:
        self.fa("plan", "06", "--seq", "256", code=OK, out=r"06_batched on B=1 H=2 Nq=256 .*\n"
                r"  fa_06_batched_d128: grid 2 x 2 x 1, 128 threads, \d+ bytes of dynamic shared memory\n")  # fmt: skip
        self.fa(
            "plan",
            "a0",
            "--seq",
            "256",
            code=OK,
            out=r".*\n( .*\n){3}  scratch: S and P, 524288 bytes\n",
        )

    def test_nothing_to_plan(self) -> None:
        for words in (("06",), ("06", "--json"), ("06", "05", "--seq", "64")):
            self.refused("plan", *words, "--dim", "7", says="head_dim 7 is not one of 64, 128")
        self.refused(
            "plan", "47", says="seq_q 512 is above 1, .*; --seq 1 --seq-kv 512 are one query"
        )
        self.fa("plan", "06", "--dim", "7,64", code=OK, out=r".*unsupported: .*\n.*grid.*")

    def test_json_has_every_argument_and_every_refusal(self) -> None:
        text = self.fa("plan", "31", "06", "--seq", "300", "--json", code=OK, out=r".+")
        self.assertRegex(json.loads(text)["plans"][0]["refused"], "300 is not a multiple")
        text = self.fa(
            "plan",
            "32",
            "--seq",
            "256",
            "--dim",
            "64,128",
            "--causal",
            "--json",
            code=OK,
            out=r".+",
        )
        plans = json.loads(text)["plans"]
        self.assertEqual([plan["problem"]["head_dim"] for plan in plans], [64, 128])
        launch = plans[1]["launches"][0]
        self.assertEqual(launch["arguments"][0]["map"]["tensor"], "q")
        self.assertEqual(launch["arguments"][0]["map"]["extents"][:4], [64, 256, 2, 2])
        self.assertIn({"scratch": 0}, launch["arguments"])
        self.assertEqual(
            plans[1]["scratch"], [{"name": "tile counter", "bytes": 8, "zeroed": True}]
        )

    def test_a_cache_on_a_card_of_any_size(self) -> None:
        cache = ("--batch", "2", "--heads", "8", "--kv-heads", "2", "--seq", "1", "--seq-kv", "640")
        words = ("plan", "47", *cache, "--lengths", "600,70", "--page", "16", "--json")
        (plan,) = json.loads(self.fa(*words, code=OK, out=r".+"))["plans"]
        shape = {"kv_heads": 2, "lengths": [600, 70], "page": 16}
        self.assertEqual({key: plan["problem"][key] for key in shape}, shape)
        arguments = plan["launches"][0]["arguments"]
        self.assertEqual(arguments[5:7], [{"tensor": "lengths"}, {"tensor": "page_table"}])
        blocks = {}
        for sms in ("1", "132"):
            plans = json.loads(
                self.fa("plan", "46", *cache, "--sms", sms, "--json", code=OK, out=r".+")
            )["plans"]
            blocks[sms] = plans[0]["launches"][0]["grid"][0]
        self.assertEqual(blocks, {"1": 2, "132": 40})  # two an SM; 10 tiles of 64 keys for 4 heads
        self.fa("plan", "46", "--sms", "0", code=USAGE, err=r".*--sms.*")


class RungWords(CliCase):
    def test_unknown_rung(self) -> None:
        self.refused(
            "run",
            "99",
            says=r"rung '99' is unknown \(did you mean '09'\?\); allowed: .*\(fp32, ampere, hopper, decode",
        )
        self.refused("run", "batchd", says=r"rung 'batchd' is unknown \(did you mean 'batched'\?\)")
        self.refused("run", "06_Batched", says=r"is unknown \(did you mean '06_batched'\?\)")
        self.refused("check", "06x", says="rung '06x' is unknown")
        self.refused("bench", "06", "", says="rung '' is unknown")

    def test_empty_words(self) -> None:
        for command in ("run", "explain"):
            self.refused(
                command,
                "06",
                "--tile",
                "",
                says="--tile '' is not a tile, such as 64x32w2; fa list",
            )
        self.refused("compare", "05@", "06", says="rung '05@': tile '' is not a tile, such as")
        self.refused("list", "", says="pattern '' means no rung")
        for command in ("run", "check", "plan", "explain", "tune"):
            self.refused(command, "", says="rung '' is unknown")
        for option in (
            "--seq",
            "--dim",
            "--batch",
            "--device",
            "--inputs",
            "--spread",
            "--threads",
            "--lengths",
        ):
            self.refused("run", "06", option, "", says=f"{option} '' is ")

    def test_run_takes_one(self) -> None:
        self.refused("run", "all", says=r"'all' means \d+ rungs, one is needed; fa list shows them")
        self.refused("run", "ampere", says=r"'ampere' means \d+ rungs, one is needed: 01, 02, ")

    def test_all_spellings_reach_the_device(self) -> None:
        for word in ("06", "6", "06_batched", "batched"):
            self.fa("run", word, "--seq", 128, code=OK, out="06_batched " + CORRECT, err=ON_VM)


class BadProblems(CliCase):
    def test_numbers(self) -> None:
        for option in ("--batch", "--heads", "--seq", "--seq-kv", "--dim", "--seed"):
            for value in ("12abc", "1.5", "", "0x10", "-1", "99999999999999999999"):
                self.refused(
                    "run", "06", option, value, says=rf"{option} '{value}' is not a whole number"
                )
        for option in ("--batch", "--heads", "--seq", "--dim"):
            self.refused("run", "06", option, "0", says=rf"{option} '0' is not .* from 1 to")

    def test_lists(self) -> None:
        self.refused("bench", "--seqs", "512,12abc", says="--seqs '12abc' is not a whole number")
        self.refused("bench", "--seqs", "512,512", says="--seqs '512,512' names 512 twice")
        self.refused("bench", "--rounds", "0", says="--rounds '0'")

    def test_head_dim(self) -> None:
        says = "head_dim 96 is not one of 64, 128"
        self.refused("run", "06", "--dim", "96", says=says)
        self.refused("bench", "06", "--dim", "96", says=says)

    def test_partial_tiles(self) -> None:
        self.refused("run", "06", "--seq", "500", says="500 is not a multiple of the tile's 128")
        self.refused("run", "06", "--seq-kv", "100", says="seq_kv 100 is not a multiple")
        self.refused("bench", "06", "--seqs", "500", says="500 is not a multiple")

    def test_causal(self) -> None:
        for rung in rungs():
            if not rung["causal"]:
                self.refused("run", rung["id"], "--causal", says="causal")
                break

    def test_few_queries(self) -> None:
        says = "40_warp: seq_q 512 is above 1, [^\\n]*; --seq 1 --seq-kv 512 are one query and its cache"
        for words in (("run", "40"), ("explain", "40", "41"), ("compare", "40", "41")):
            self.refused(*words, says=says)

    def test_gradients_and_decode_have_no_problem_in_common(self) -> None:
        self.refused("explain", "decode", "backward", says="name one family at a time")
        self.refused("explain", "40", "60", says="name one family at a time")

    def test_tile(self) -> None:
        self.refused("run", "01", "--tile", "1x2w3", says="tile 1x2w3 is not one of .*64x32w2")

    def test_words(self) -> None:
        allowed = "allowed: normal, uniform, large, needle, rising, spike, low, high"
        self.refused("run", "06", "--inputs", "zeros", says=allowed)
        for spread in ("0", "wide", "1e9", "2x", "nan"):
            says = f"--spread '{spread}' is not a number from 0.0625 to 128"
            self.refused("bench", "06", "--spread", spread, says=says)
        self.refused("run", "06", "--device", "tpu", says="allowed: auto, gpu, vm")
        self.refused("check", "--suite", "big", says="'big' is unknown; allowed: quick, full")
        self.refused("bench", "none", says="nothing to measure")
        self.refused(
            "check", "fp32", "--mutants", says="--mutants checks no rung, and 'fp32' is one"
        )


class NoGpu(CliCase):
    def test_what_needs_one_says_so(self) -> None:
        for words in (
            ("run", "06", "--device", "gpu"),
            ("check", "--device", "gpu"),
            ("bench",),
            ("limits",),
        ):
            self.refused(*words, code=ENVIRONMENT, says=NO_GPU)

    def test_the_file_is_not_created(self) -> None:
        path = self.folder / "r.json"
        self.refused("bench", "--json", path, code=ENVIRONMENT, says=NO_GPU)
        on_gpu = ("run", "06", "--device", "gpu", "--json", path, "--output", "o.npy")
        self.refused(*on_gpu, code=ENVIRONMENT, says=NO_GPU)
        self.assertEqual(list(self.folder.iterdir()), [])


class Tune(CliCase):
    STATIC = ("tune", "06", "--static")
    LIMITS = ("registers", "shared memory", "warps", "blocks")

    def test_without_a_gpu(self) -> None:
        self.fa(
            *("tune", "06", "--json", "t.json"),
            code=ENVIRONMENT,
            err=rf"(fa: [^\n]*\n)*fa: fa tune 06 --static [^\n]*\nfa: error: {NO_GPU}[^\n]*\n",
        )
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_usage(self) -> None:
        self.refused("tune", says="rung")
        self.refused("tune", "99", says="rung '99' is unknown")
        self.refused("tune", "all", says="'all' means")
        self.refused("tune", "06", "07", says="unexpected argument '07'")
        self.refused("tune", "06", "--tiles", "1x2w3", says="tile 1x2w3 is not one of 128x64w4, ")
        self.refused(
            "tune", "06", "--tiles", "128x64w4,", says="--tiles '128x64w4,' has an empty entry"
        )
        self.refused("tune", "06", "--tiles", "128x64w4,128x64w4", says="names 128x64w4 twice")
        self.refused("tune", "06", "--dim", "96", says="head_dim 96 is not one of 64, 128")
        self.refused("tune", "06", "--seq", "500", says="500 is not a multiple")
        self.refused("tune", "06", "--causal", says="causal")
        self.refused("tune", "06", "--rounds", "0", says="--rounds '0'")
        self.refused("tune", "06", "--sm", "90", says="--sm goes with --static")
        self.refused(*self.STATIC, "--sm", "75", says="--sm '75' is unknown; allowed: 80, 86")
        self.refused(*self.STATIC, "--sm", "9x", says="--sm '9x' is not a whole number")

    def test_static_table(self) -> None:
        out = self.fa(*self.STATIC, "--dim", 128, code=OK, out=r".+", err=r"(fa: [^\n]*\n)?")
        own = [line for line in out.splitlines() if line.endswith("the rung's own")]
        self.assertEqual(len(own), out.count("compute capability"))
        for line in own:
            self.assertRegex(line, r"^128 +128x64w4 +\d+ +\d+ +64 ")

    def test_static_of_a_rung_for_few_queries(self) -> None:
        out = self.fa("tune", "40", "--static", code=OK, out=r".+", err=r"(fa: [^\n]*\n)?")
        self.assertRegex(out, r"\n128 +1x16w1 +\d+ ")

    def test_every_launch_of_a_plan_has_its_row(self) -> None:
        out = self.fa("tune", "a5", "--static", "--dim", 64, code=OK, out=r".+",
                      err=r"(fa: [^\n]*\n)?")  # fmt: skip
        for entry in ("fa_a5_transposed_k_d64", "fa_a5_transposed_k_transpose_d64"):
            self.assertRegex(out, rf"the rung's own; {entry}\n")


class Files(CliCase):
    def write(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path

    def run_with(
        self, q: Path, k: Path, v: Path, *more: object, code: int = USAGE, says: str
    ) -> None:
        self.refused("run", "06", "--q", q, "--k", k, "--v", v, *more, code=code, says=says)

    def test_good_files_reach_the_device(self) -> None:
        good = self.write("good.npy", npy_bytes((1, 2, 128, 64)))
        words = ("run", "06", "--q", good, "--k", good, "--v", good)
        self.fa(*words, code=OK, out="06_batched " + CORRECT, err=ON_VM)

    def test_float32_is_converted(self) -> None:
        single = self.write("single.npy", npy_bytes((1, 2, 128, 64), "<f4"))
        self.fa(
            *("run", "06", "--q", single, "--k", single, "--v", single),
            code=OK,
            out="06_batched " + CORRECT,
            err=rf"fa: [^\n]*float32[^\n]*converted\n{ON_VM}",
        )

    def test_a_cache_of_files_is_rounded_to_e4m3(self) -> None:
        query = self.write("query.npy", npy_bytes((1, 4, 1, 64)))
        cache = self.write("cache.npy", npy_bytes((1, 2, 128, 64)))
        self.fa(
            *(
                "run",
                "51",
                "--q",
                query,
                "--k",
                cache,
                "--v",
                cache,
                "--json",
                self.folder / "e.json",
            ),
            code=OK,
            out="51_e4m3 " + CORRECT,
            err=rf"fa: [^\n]*takes float16, K and V float8_e4m3: converted\n{ON_VM}",
        )
        (row,) = json.loads((self.folder / "e.json").read_text())["rows"]
        self.assertEqual(row["problem"]["cache"], "float8_e4m3")

    def test_float32_that_does_not_fit(self) -> None:
        large = self.write("large.npy", npy_bytes((1, 1, 128, 64), "<f4", b"\x00\x00\x80\x4f"))
        paths = ("--q", large, "--k", large, "--v", large)
        self.fa(
            *("run", "06", *paths),
            code=USAGE,
            err=rf"fa: [^\n]*converted\n{ON_VM}fa: error: [^\n]*large.npy[^\n]*does not fit float16\n",
        )

    def test_bad_files(self) -> None:
        good = self.write("good.npy", npy_bytes((1, 2, 128, 64)))
        double = self.write("double.npy", npy_bytes((1, 2, 128, 64), "<f8"))
        flat = self.write("flat.npy", npy_bytes((2, 128, 64)))
        short = self.write("short.npy", npy_bytes((1, 2, 128, 64))[:-10])
        heads = self.write("heads.npy", npy_bytes((1, 3, 128, 64)))
        text = self.write("text.npy", b"hello")
        nan = self.write("nan.npy", npy_bytes((1, 2, 128, 64), "<f2", b"\x00\x7e"))
        for bad in (double, flat, short, heads, text, self.folder / "absent.npy"):
            self.run_with(good, bad, good, says=bad.name)
        says = rf"{ON_VM}fa: error: [^\n]*nan.npy: nan at[^\n]*\n"
        self.fa("run", "06", "--q", good, "--k", nan, "--v", good, code=USAGE, err=says)

    def test_three_files_or_none(self) -> None:
        good = self.write("good.npy", npy_bytes((1, 2, 128, 64)))
        self.refused("run", "06", "--q", good, says="--q, --k and --v must be given together")

    def test_files_decide_the_shape(self) -> None:
        good = self.write("good.npy", npy_bytes((1, 2, 128, 64)))
        self.run_with(good, good, good, "--seq", "128", says="--seq cannot be combined")
        self.run_with(good, good, good, "--seed", "2", says="--seed cannot be combined")

    def test_outputs_that_cannot_be_written(self) -> None:
        for option in ("--json", "--output"):
            says = f"{option}: cannot write 'none/r': there is no folder"
            self.refused("run", "06", option, "none/r", code=ENVIRONMENT, says=says)
            self.refused("run", "06", option, self.folder, code=ENVIRONMENT, says="Is a directory")
        says = "--json: cannot write 'none/r.json': there is no folder"
        self.refused("bench", "--json", "none/r.json", code=ENVIRONMENT, says=says)

class Terminal(CliCase):
    """A pseudo-terminal gets colour; a pipe does not, as the other tests see."""

    def in_terminal(self, *words: str, **extra: str) -> str:
        main, child = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", **extra}
        process = subprocess.Popen(
            [FA, *words], stdout=child, stderr=child, env=environment, cwd=self.folder
        )
        os.close(child)
        data = b""
        while True:
            try:
                block = os.read(main, 4096)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            data += block
        os.close(main)
        self.assertEqual(process.wait(), WRONG)
        return data.decode()

    def test_a_verdict_has_its_colour_unless_it_is_unwanted(self) -> None:
        words = ("run", "06", "--device", "vm", "--seq", "128", "--max-steps", "1000")
        self.assertIn("\x1b[31mwrong", self.in_terminal(*words))
        self.assertNotIn("\x1b", self.in_terminal(*words, NO_COLOR="1"))


class Completions(CliCase):
    """The script for bash, asked in bash."""

    def complete(self, *words: str) -> list[str]:
        script = self.fa("completions", "bash", code=OK, out=r".+")
        line = " ".join(f"'{word}'" for word in ("fa", *words))
        ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _fa; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(
            ["bash", "--norc", "-c", f"{script}\n{ask}"],
            capture_output=True, text=True, check=True, cwd=self.folder,
        )  # fmt: skip
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_commands(self) -> None:
        self.assertEqual(self.complete("co"), ["compare", "completions"])
        self.assertEqual(self.complete("help", "ex"), ["explain"])

    def test_options_and_values(self) -> None:
        self.assertEqual(self.complete("run", "06", "--se"), ["--seq", "--seq-kv", "--seed"])
        self.assertEqual(self.complete("run", "06", "--device", ""), ["auto", "gpu", "vm"])
        self.assertIn("rising", self.complete("bench", "--inputs", "r"))
        self.assertEqual(self.complete("run", "06_b"), ["06_batched"])
        self.assertEqual(self.complete("limits", "06_b"), [])
        self.assertEqual(self.complete("completions", ""), ["--help", "bash", "zsh"])
        (self.folder / "mine.json").write_text("")
        self.assertEqual(self.complete("bench", "--json", "mi"), ["mine.json"])
        self.assertEqual(self.complete("explain", "--json", "28"), ["28", "28_guarded"])  # a flag

    def test_zsh_names_every_option(self) -> None:
        script = self.fa("completions", "zsh", code=OK, out=r"#compdef fa\n.+")
        for words in (
            "'--seq-kv[",
            "'--device[",
            ":value:(auto gpu vm)",
            ":file:_files",
            "'bench:",
        ):
            self.assertIn(words, script)
        if zsh := shutil.which("zsh"):
            subprocess.run([zsh, "-n", "-c", script], check=True)

    def test_other_shells(self) -> None:
        self.refused("completions", "fish", says="'fish' is unknown; allowed: bash, zsh")
        self.refused("completions", says="no shell given; see fa completions --help")


class Library(CliCase):
    """libfa.so as scripts/peers.py uses it."""

    def setUp(self) -> None:
        super().setUp()
        self.library = ctypes.CDLL(str(LIBRARY))

    def bench(self, *words: str) -> int:
        argv = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
        return self.library.fa_bench(len(words), argv, None, 0)

    def test_version(self) -> None:
        self.assertEqual(self.library.fa_api_version(), 5)

    def test_codes(self) -> None:
        self.assertEqual(self.bench("--seqs", "12abc"), USAGE)
        self.assertEqual(self.bench("06"), ENVIRONMENT)
        self.assertEqual(self.bench("--help"), OK)

    def test_only_the_interface_is_exported(self) -> None:
        done = subprocess.run(
            ["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            self.skipTest("nm is not installed")
        names = {line.split()[-1] for line in done.stdout.splitlines()}
        header = SOURCE / "harness/capi/attention.h"
        declared = re.findall(r"FA_ATTENTION_API .*?(fa_\w+)\(", header.read_text(encoding="utf-8"))
        self.assertEqual(names, {"fa_api_version", "fa_bench", *declared})


if __name__ == "__main__":
    sys.exit(run(__name__))
