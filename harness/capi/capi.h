// SPDX-License-Identifier: MIT
/* C interface of libfa.so: the benchmark of `fa bench`, run inside another program.
 *
 * scripts/peers.py loads the library with ctypes in a process that also holds PyTorch, and gives
 * its attention implementations as callbacks. Rungs and peers then share one process, one set of
 * device buffers, one timing policy, the same interleaved rounds and one result file.
 *
 * All structures have natural C alignment on a 64-bit machine; the offsets are in the comments and
 * are checked by static_assert. Pointers in structures passed to fa_bench must stay valid until it
 * returns. All callbacks run on the thread that called fa_bench.
 */
#ifndef FA_HARNESS_CAPI_CAPI_H_
#define FA_HARNESS_CAPI_CAPI_H_

#include <stdint.h>

/* NOLINTBEGIN(modernize-use-using): C has no other. */

#define FA_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Number of this interface; fa_api_version() must return it. */
#define FA_API_VERSION 5

/* Result of a callback. Any other value counts as FA_PEER_ERROR. */
enum {
  FA_PEER_OK = 0,
  FA_PEER_UNSUPPORTED = 1,   /* this problem cannot run here; message says why */
  FA_PEER_OUT_OF_MEMORY = 2, /* message says what was needed */
  FA_PEER_ERROR = 3          /* message says what failed */
};

/* A problem is JSON with the keys that it has in a result file; `scale`, the factor on Q K^T, is
 * always there, and `device` is the ordinal of the CUDA device that holds the buffers. Tensors are
 * [batch, heads, seq, head_dim], contiguous unless the problem has strides: q and o have seq_q
 * rows, k and v have kv_heads heads and seq_kv rows. A causal query i sees keys j <= i + seq_kv -
 * seq_q. With a page, k and v are [pages, kv_heads, page, head_dim]; with lengths, batch entries
 * have fewer keys than seq_kv. A peer refuses what it does not take. */

/* Says whether the peer takes this problem, without touching the GPU: FA_PEER_OK or
 * FA_PEER_UNSUPPORTED. A reason is written to `message`, NUL-terminated, at most `size` bytes. */
typedef int (*fa_peer_supports)(void* user, const char* problem, char* message, int32_t size);

/* Device pointers, 72 bytes. Inputs are valid and unchanged until the problem changes. Results must
 * be stored, in stream order (write them directly, or copy them on the same stream). They are NULL
 * while timing: the peer then leaves its results wherever its own output goes, without an extra
 * copy; dropping the tensors at once is fine. */
typedef struct fa_tensors {
  const void *q, *k, *v; /* offsets 0, 8, 16 */
  void* o;               /* offset 24: the result; of a backward pass an input */
  const void *lse, *d_o; /* offsets 32, 40: float32 log-sum-exp of the rows, and the gradient of O;
                          * inputs of a backward pass, else NULL */
  void *d_q, *d_k, *d_v; /* offsets 48, 56, 64: the results of a backward pass, else NULL */
} fa_tensors;

/* Enqueues one pass, backward where the problem has that key, on `stream` (a cudaStream_t) and
 * returns without waiting for it.
 *
 * While timing, launches are queued behind a kernel that holds the stream until the host is done
 * queueing, so a callback must not synchronise with the device (no .item(), no torch.cuda
 * .synchronize(), no print of a tensor): it would wait for the hold to expire, and the peer gets
 * status error. The callback is first called several times without a hold; compile and autotune
 * there. An exception must not leave the callback: return FA_PEER_ERROR and put its text into
 * `message` (NUL-terminated, at most `size` bytes). */
typedef int (*fa_peer_launch)(void* user, const char* problem, const fa_tensors* tensors,
                              void* stream, char* message, int32_t size);

/* One peer. 88 bytes. */
typedef struct fa_peer {
  /* offset 0: row id in the results: "fa2", "cudnn", "cublas", "triton", "fa3". */
  const char* id;
  /* offset 8: row variant: version or backend, "torch 2.11"; NULL for none. */
  const char* variant;
  /* offset 16: NULL when the peer can run; else its rows get status "unsupported" with this reason
   * ("flash_attn_interface is not installed") and the callbacks, which may be NULL, are not used.
   */
  const char* unavailable_reason;
  /* offset 24: may be NULL: every problem is taken. Called before the problem's buffers are
   * allocated: what is kept of the problem before this one can be freed here. */
  fa_peer_supports supports;
  /* offset 32 */
  fa_peer_launch launch;
  /* offset 40: handed to the callbacks; may be NULL. */
  void* user;
  /* offset 48: {0, 0, 0} for attention. {M, N, K}: the peer is a matrix product of its own buffers
   * in the problem's dtype, the ceiling beside the attention rows. It counts 2*M*N*K operations,
   * ignores q, k, v and o, is not verified against attention, and its rows carry "matmul":
   * [M, N, K]. */
  int64_t matmul[3];
  /* offset 72: 0 for attention. Else the peer copies this many bytes from one of its own buffers to
   * another, the ceiling of memory traffic: each byte is read and written. Its rows carry
   * "copy_bytes" and no TFLOPS. */
  int64_t copy_bytes;
  /* offset 80: NULL: nothing is known. Else read after launches that store: the device memory in
   * bytes that the last one took besides the tensors, its own results included; -1: not known. */
  const int64_t* device_bytes;
} fa_peer;

/* FA_API_VERSION of the library. */
FA_API int32_t fa_api_version(void);

/* Runs `fa bench` with these peers beside the rungs. argv are its arguments without a program name:
 * {"all", "--seqs", "8192", "--json", "out.json"}; see `fa bench --help`. Zero rungs are possible:
 * with peers, the word "none" selects no rung. Tables go to stdout, messages to stderr. Never exits
 * the process and never throws. Returns the exit code of `fa bench`: 0 fine; 1 something was
 * incorrect; 2 usage, also a --json file that is not ours; 3 the environment (no GPU, out of
 * memory, a launch failed, a file cannot be written).
 *
 * The CUDA primary context of the current device is used, the one that PyTorch uses as well. */
FA_API int32_t fa_bench(int32_t argc, const char* const* argv, const fa_peer* peers,
                        int32_t n_peers);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif /* FA_HARNESS_CAPI_CAPI_H_ */
