// SPDX-License-Identifier: MIT
#include "catch.h"
#include "ptxvm/module.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

const char* const kHeader = ".version 9.0\n.target sm_80\n.address_size 64\n";

}  // namespace

TEST_CASE("a module as nvcc writes it") {
  const Module m = Module::parse(std::string(kHeader) + R"(
	// .globl	k
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.const .align 4 .b8 table[8] = {0, 0, 128, 63, 1, 2, 3, 4};
.global .align 8 .u64 pointers[2] = {generic(counter), counter+4};
.global .align 4 .u32 counter = 7;
.extern .shared .align 16 .b8 smem[];

.visible .entry k(
	.param .u64 k_param_0,
	.param .align 8 .b8 k_param_1[40],
	.param .u64 .ptr .global .align 4 k_param_2,
	.param .u32 k_param_3
)
.maxntid 128, 1, 1
.minnctapersm 2
{
	.local .align 16 .b8 	__local_depot0[144];
	.reg .b64 	%SP, %SPL;
	.reg .pred 	%p<3>;
	.reg .b32 	%r<9>;
	.loc	1 9 0
	// demoted variable
	.shared .align 4 .b8 st[512];
	mov.u64 	%SPL, __local_depot0;
	cvta.local.u64 	%SP, %SPL;
	ld.param.u32 %r1, [k_param_1+36];
	// begin inline asm
	{
	.reg .pred q;
	.reg .b32 t;
	setp.lt.s32 q|%p1, %r1, 3;
	selp.b32 t, 1, 2, q;
L1: @!q add.s32 t, t, 1;
	}
	{
	.reg .b32 t;
L1:	mov.b32 t, smem;
	@%p1 bra L1;
	}
	// end inline asm
	mov.u32 %r2, %tid.x;
	shfl.sync.bfly.b32 %r3|_, %r2, 1, 31, -1;
	shfl.sync.bfly.b32 %r3, %r2, 1, 0x1f, 0xffffffff;
	bra.uni 	$L__BB0_1;
$L__BB0_1:
	ret;
}
	.file	1 "/a/b/kernel.cu"
	.section	.debug_str
	{
$L__info_string0:
.b8 95,90,0
	}
)",
                                 "k.ptx");
  const Kernel& k = m.kernel("k");
  CHECK(m.target() == "sm_80");
  CHECK(m.isa_version() == 90);
  REQUIRE(k.parameters().size() == 4);
  CHECK(k.parameters()[1].offset == 8);
  CHECK(k.parameters()[1].size == 40);
  CHECK(k.parameters()[3].offset == 56);
  CHECK(k.parameter_bytes() == 60);
  CHECK(k.static_shared_bytes() == 512);
  CHECK(k.local_bytes() == 144);
  CHECK(k.uses_dynamic_shared());
  CHECK(k.max_threads() == Dim3{128, 1, 1});
  CHECK(k.unsupported().empty());
  CHECK(k.instructions().size() == 13);
}

TEST_CASE("inlining chains end at the kernel's own line") {
  const Module m = Module::parse(std::string(kHeader) + R"(
.visible .entry k()
{
	.reg .b32 %r<3>;
	.loc	1 19 3
	mov.u32 %r1, 1;
	.loc	2 7 73, function_name $L__info_string0, inlined_at 1 19 3
	mov.u32 %r1, 2;
	.loc	2 6 10, function_name $L__info_string1, inlined_at 2 7 73
	mov.u32 %r1, 3;
	ret;
}
	.file	1 "/a/kernel.cu"
	.file	2 "/a/inner.cuh", 1700000000, 12
)",
                                 "k.ptx");
  const Kernel& k = m.kernel("k");
  CHECK(k.source(0).size() == 1);
  REQUIRE(k.source(2).size() == 3);
  CHECK(k.source(2)[0] == SourceLocation{"/a/inner.cuh", 6, 10});
  CHECK(k.source(2)[1] == SourceLocation{"/a/inner.cuh", 7, 73});
  CHECK(k.source(2)[2] == SourceLocation{"/a/kernel.cu", 19, 3});
  CHECK(k.point_at(2, "x").notes.at(0) ==
        "from inner.cuh:6 (inlined at inner.cuh:7, inlined at kernel.cu:19)");
}

TEST_CASE("a kernel that calls what is not there loads, says so, and is not launched") {
  const std::string text = std::string(kHeader) + R"(
.extern .func (.param .b32 result) elsewhere (.param .b64 given);
.visible .entry k()
{
	{
	.param .b64 param0;
	.param .b32 retval0;
	call.uni (retval0), elsewhere, (param0);
	}
	ret;
}
.visible .entry fine() { ret; }
)";
  const Module m = Module::parse(text, "k.ptx");
  REQUIRE(m.kernel("k").unsupported().size() == 1);
  CHECK(m.kernel("k").unsupported()[0].format() ==
        "error: k.ptx:11: 'elsewhere' has no body in this module\n"
        "  11 | \tcall.uni (retval0), elsewhere, (param0);\n"
        "     | \t^~~~~~~~\n"
        "  note: of functions from elsewhere the machine provides vprintf, malloc, free and "
        "__assertfail");
  Memory memory;
  CHECK_THROWS_AS(launch(m, "k", {}, memory), Error);
  CHECK(launch(m, "fine", {}, memory).ok());
}

TEST_CASE("a bad kernel refuses itself and no other") {
  const std::string fine = ".visible .entry fine() { .reg .b32 %r<2>; mov.u32 %r1, 1; ret; }\n";
  for (const char* bad :
       {".visible .entry bad() { frob.u32 %r1; ret; }\n",                    // no such instruction
        ".visible .entry bad() { .reg .b32 %r<2>; add.s32 %r1; ret; }\n",    // operands
        ".visible .entry bad() { .reg .b32 %r<2>; add.s32 %r1, ; ret; }\n",  // grammar
        ".visible .entry bad() { mov.u32 %r1, 0x; ret; }\n",                 // a token
        ".visible .entry bad(.param .u33 x) { ret; }\n",                     // its head
        ".visible .entry bad() .frob { ret; }\n",
        ".visible .entry bad() { call.uni nowhere; ret; }\n", ".visible .entry bad() { }\n",
        ".func f() { frob; ret; }\n.visible .entry bad() { call.uni f; ret; }\n"}) {
    for (bool first : {true, false}) {
      INFO(bad);
      const Module m = Module::parse(kHeader + (first ? bad + fine : fine + bad), "k.ptx");
      REQUIRE(m.kernels().size() == 2);
      CHECK(m.kernel("fine").errors().empty());
      Memory memory;
      CHECK(launch(m, "fine", {}, memory).ok());
      REQUIRE(m.kernel("bad").errors().size() >= 1);
      const Diagnostic& d = m.kernel("bad").errors()[0];
      CHECK(d.where.line == (first ? 4 : 5));
      CHECK_THROWS_AS(launch(m, "bad", {}, memory), Error);
    }
    // Where there is nothing to run, the text itself is refused.
    CHECK_THROWS_AS(Module::parse(std::string(kHeader) + bad, "k.ptx"), Error);
  }
}

TEST_CASE("scopes hide names, and each has its own registers") {
  const Run r = run(kernel(R"(
  mov.u32 %r1, 1;
  {
    .reg .b32 %r1;
    mov.u32 %r1, 2;
    st.global.u32 [%out], %r1;
  }
  st.global.u32 [%out+4], %r1;)"));
  CHECK(r.at<uint32_t>(3, 0) == 2);
  CHECK(r.at<uint32_t>(3, 1) == 1);
}

TEST_CASE("constants in all notations") {
  const Run r = run(kernel(R"(
  mov.u32 %r1, 0x10; mov.u32 %r2, 0b101; mov.u32 %r3, 017; mov.s32 %r4, -1;
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};)"));
  CHECK(r.at<uint32_t>(0, 0) == 16);
  CHECK(r.at<uint32_t>(0, 1) == 5);
  CHECK(r.at<uint32_t>(0, 2) == 15);
  CHECK(r.at<int32_t>(0, 3) == -1);
  const Run f = run(kernel(R"(
  mov.f32 %f1, 0f3F800000; mov.f32 %f2, 1.5; mov.f32 %f3, 0d4000000000000000; mov.b32 %r1, 0fBF800000;
  st.global.v4.b32 [%out], {%f1, %f2, %f3, %r1};)"));
  CHECK(f.at<float>(0, 0) == 1.0f);
  CHECK(f.at<float>(0, 1) == 1.5f);
  CHECK(f.at<float>(0, 2) == 2.0f);
  CHECK(f.at<float>(0, 3) == -1.0f);
  const Run short_forms = run(kernel(R"(
  mov.f32 %f1, .5; mov.f32 %f2, -.5e1; mov.f32 %f3, 1.e3; mov.f32 %f4, 1.E-3;
  st.global.v4.b32 [%out], {%f1, %f2, %f3, %f4};)"));
  CHECK(short_forms.at<float>(0, 0) == 0.5f);
  CHECK(short_forms.at<float>(0, 1) == -5.0f);
  CHECK(short_forms.at<float>(0, 2) == 1000.0f);
  CHECK(short_forms.at<float>(0, 3) == 0.001f);
}

TEST_CASE("malformed text gives errors, never a crash") {
  for (const char* text :
       {"", "}", ".entry", ".visible .entry k(", ".version", ".version 9", "{{{{", "[[[[",
        ".version 9.0\n.target sm_80\n.visible .entry k() { @", ".global .b32 x = {{{{{{",
        ".version 9.0\n.target sm_80\n.visible .entry k() { ld.global.u32 [", "\"", "/*",
        ".version 9.0\n.target sm_80\n.visible .entry k() { L: L: ret; }",
        ".version 9.0\n.target sm_80\n.visible .entry k() { mov.u32 %r1, 0x; ret; }",
        ".version 9.0\n.target sm_80\n.visible .entry k() { .reg .b32 %r<99999999999>; ret; }",
        ".version 9.0\n.target sm_80\n.global .b8 x[2147483647][2147483647];",
        ".version 9.0\n.target banana\n.visible .entry k() { ret; }"}) {
    INFO(text);
    CHECK_THROWS_AS(Module::parse(text, "bad.ptx"), Error);
  }
}

TEST_CASE("the end of a C string, which NVRTC counts, belongs to no text") {
  const std::string text = ".version 9.0\n.target sm_80\n.visible .entry k() { ret; }\n";
  CHECK(Module::parse(text + '\0', "k.ptx").kernels().size() == 1);
  CHECK(Module::parse(text + std::string(3, '\0'), "k.ptx").kernels().size() == 1);
  CHECK_THROWS_AS(Module::parse(text + '\0' + "\n", "k.ptx"), Error);
}
