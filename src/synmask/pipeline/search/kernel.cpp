// Beam search on a CPU: attention along the paths of hypotheses (cached_attention.py), and their best continuations
// (continuations.py). Tensors are float32.
//
// The bytes of the results do not depend on the processor or on the number of threads: one thread computes a
// sentence, every sum has a fixed order, exp is our own, and products are not fused with sums (setup.py).

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <Python.h>
#include <torch/library.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#define INLINE inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define EVERY_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))  // the same sums, more of them at once
#else
#define EVERY_PROCESSOR
#endif

namespace synmask {

constexpr int64_t WIDE = 16;   // numbers that are added up side by side
constexpr int64_t BLOCK = 64;  // logits that are looked at together
constexpr float INFINITE = std::numeric_limits<float>::infinity();

using Floats __attribute__((vector_size(WIDE * sizeof(float)), aligned(alignof(float)), may_alias)) = float;
using Whole __attribute__((vector_size(WIDE * sizeof(float)))) = int32_t;

INLINE Floats load(const float* x) { return *reinterpret_cast<const Floats*>(x); }
INLINE void store(float* x, Floats value) { *reinterpret_cast<Floats*>(x) = value; }
INLINE Floats larger(Floats x, Floats y) { return x > y ? x : y; }

// e^x to the last bits, for x <= 0; e^-87 below -87; NaN for NaN.
INLINE Floats exponential(Floats x) {
  constexpr float shift = 12582912;  // x + shift is rounded to a whole number
  x = x < -87 ? Floats{} - 87 : x;  // NaN stays
  const Floats shifted = x * 1.44269504088896341f + shift, power = shifted - shift;
  const Floats rest = (x - power * 0.693359375f) - power * -2.12194440e-4f;
  Floats sum = rest * (1 / 5040.f) + 1 / 720.f;  // the Taylor series, by Horner's rule
  for (const float factor : {1 / 120.f, 1 / 24.f, 1 / 6.f, 1 / 2.f, 1.f, 1.f}) sum = rest * sum + factor;
  return sum * std::bit_cast<Floats>((std::bit_cast<Whole>(shifted) + 127) << 23);
}

INLINE float total(Floats x) {
  using Half __attribute__((vector_size(WIDE * sizeof(float) / 2))) = float;
  using Quarter __attribute__((vector_size(WIDE * sizeof(float) / 4))) = float;
  const Half half = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  const Quarter sums = __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

// The first `count` numbers, and `rest` in the other places.
INLINE Floats load_some(const float* x, int64_t count, float rest) {
  float all[WIDE];
  std::fill(all, all + WIDE, rest);
  std::copy_n(x, count, all);
  return load(all);
}

INLINE float dot(const float* x, const float* y, int64_t count) {
  Floats sums = {};
  int64_t k = 0;
  for (; k + WIDE <= count; k += WIDE) sums += load(x + k) * load(y + k);
  if (k < count) sums += load_some(x + k, count - k, 0) * load_some(y + k, count - k, 0);
  return total(sums);
}

INLINE float largest(const float* x, int64_t count) {
  Floats tops = Floats{} - INFINITE;
  int64_t k = 0;
  for (; k + WIDE <= count; k += WIDE) tops = larger(load(x + k), tops);
  if (k < count) tops = larger(load_some(x + k, count - k, -INFINITE), tops);
  float top = tops[0];
  for (int64_t lane = 1; lane < WIDE; ++lane) top = std::max(top, tops[lane]);
  return top;
}

// The sum of e^(x - top).
INLINE float sum_exponentials(const float* x, int64_t count, float top) {
  Floats sums = {};
  int64_t k = 0;
  for (; k + WIDE <= count; k += WIDE) sums += exponential(load(x + k) - top);
  float sum = total(sums);
  if (k < count) {
    const Floats rest = exponential(load_some(x + k, count - k, top) - top);
    for (int64_t lane = 0; lane < count - k; ++lane) sum += rest[lane];
  }
  return sum;
}

// S sentences with W queries each. A query attends to the slots of its sentence's row of the memory (keys, then
// values, d each) that its path (S, W, t) names, or to the first t ones; `bias` is added to the scores.
struct Attention {
  const float *query, *bias;
  float* memory;
  const int64_t *rows, *path;
  float* out;  // (S, W, d)
  int64_t width, heads, head, length;
  int64_t query_sentence, query_row, memory_row, memory_slot, bias_strides[4];

  // Put the keys and values that stand behind the queries into the last slots of their paths.
  INLINE void remember(int64_t s) const {
    const int64_t d = heads * head;
    for (int64_t w = 0; w < width; ++w) {
      const int64_t slot = path[(s * width + w) * length + length - 1];
      std::copy_n(query + s * query_sentence + w * query_row + d, 2 * d, memory + rows[s] * memory_row + slot * memory_slot);
    }
  }

  INLINE void attend(int64_t s, int64_t w, float* scores) const {
    const int64_t d = heads * head;
    const float *own = query + s * query_sentence + w * query_row, *keys = memory + rows[s] * memory_row;
    const int64_t* slots = path ? path + (s * width + w) * length : nullptr;
    const float scale = 1 / std::sqrt(float(head));
    for (int64_t j = 0; j < length; ++j) {
      const float* key = keys + (slots ? slots[j] : j) * memory_slot;
      for (int64_t h = 0; h < heads; ++h) scores[h * length + j] = dot(own + h * head, key + h * head, head) * scale;
    }
    for (int64_t h = 0; h < heads; ++h) {
      float *weights = scores + h * length, *result = out + (s * width + w) * d + h * head;
      if (bias) {
        const float* more = bias + s * bias_strides[0] + h * bias_strides[1] + w * bias_strides[2];
        for (int64_t j = 0; j < length; ++j) weights[j] += more[j * bias_strides[3]];
      }
      const float top = largest(weights, length);
      int64_t j = 0;
      for (; j + WIDE <= length; j += WIDE) store(weights + j, exponential(load(weights + j) - top));
      if (j < length) {
        const Floats rest = exponential(load_some(weights + j, length - j, top) - top);
        for (int64_t lane = 0; j + lane < length; ++lane) weights[j + lane] = rest[lane];
      }
      float sum = 0;
      for (j = 0; j < length; ++j) sum += weights[j];
      const float* values = keys + d + h * head;
      mix(result, values, slots, weights, 1 / sum);
    }
  }

 private:
  // result (head) = the mean of the rows of `values` by `weights` (t).
  INLINE void mix(float* result, const float* values, const int64_t* slots, const float* weights, float factor) const {
    int64_t e = 0;
    for (; e + WIDE <= head; e += WIDE) {
      Floats sums = {};
      for (int64_t j = 0; j < length; ++j) sums += weights[j] * load(values + (slots ? slots[j] : j) * memory_slot + e);
      store(result + e, sums * factor);
    }
    for (; e < head; ++e) {
      float sum = 0;
      for (int64_t j = 0; j < length; ++j) sum += weights[j] * values[(slots ? slots[j] : j) * memory_slot + e];
      result[e] = sum * factor;
    }
  }
};

EVERY_PROCESSOR void run(const Attention& attention, bool own, int64_t begin, int64_t end, float* memory) {
  for (int64_t s = begin; s < end; ++s) {
    if (own) attention.remember(s);
    for (int64_t w = 0; w < attention.width; ++w) attention.attend(s, w, memory);
  }
}

// `own`: keys and values of the last tokens stand behind the queries and join the memory first.
at::Tensor attended(const at::Tensor& query, const at::Tensor& memory, int64_t heads, const at::Tensor& rows,
                    const std::optional<at::Tensor>& path, const std::optional<at::Tensor>& bias, bool own) {
  const int64_t sentences = query.size(0), width = query.size(1), d = memory.size(2) / 2;
  const at::Tensor slots = path ? path->contiguous() : at::Tensor(), out = at::empty({sentences, width, d}, query.options());
  const int64_t length = path ? slots.size(2) : memory.size(1);
  TORCH_CHECK(query.size(2) == (own ? 3 * d : d) && d % heads == 0 && query.stride(2) == 1 && memory.stride(2) == 1,
              "attend: query (S, W, d or 3d) and memory (rows, n, 2d)");
  TORCH_CHECK(rows.numel() == sentences && rows.is_contiguous(), "attend: rows (S,)");
  TORCH_CHECK(!path || (slots.size(0) == sentences && slots.size(1) == width), "attend: path (S, W, t)");
  Attention attention{query.const_data_ptr<float>(), nullptr, const_cast<float*>(memory.const_data_ptr<float>()),
                      rows.const_data_ptr<int64_t>(), path ? slots.const_data_ptr<int64_t>() : nullptr, out.data_ptr<float>(),
                      width, heads, d / heads, length, query.stride(0), query.stride(1), memory.stride(0), memory.stride(1), {}};
  at::Tensor more;
  if (bias) {
    more = bias->expand({sentences, heads, width, length});
    attention.bias = more.const_data_ptr<float>();
    std::copy_n(more.strides().begin(), 4, attention.bias_strides);
  }
  at::parallel_for(0, sentences, 1 + 16384 / (width * length * d), [&](int64_t begin, int64_t end) {
    std::vector<float> scores(heads * length);
    run(attention, own, begin, end, scores.data());
  });
  return out;
}

at::Tensor attend(const at::Tensor& query, const at::Tensor& memory, int64_t heads, const at::Tensor& rows,
                  const std::optional<at::Tensor>& path, const std::optional<at::Tensor>& bias) {
  return attended(query, memory, heads, rows, path, bias, false);
}

at::Tensor attend_own(const at::Tensor& made, at::Tensor memory, int64_t heads, const at::Tensor& rows, const at::Tensor& path,
                      const std::optional<at::Tensor>& bias) {
  return attended(made, memory, heads, rows, path, bias, true);
}

// The `count` largest of the numbers that are offered, the largest first; of equal ones the first offered.
struct Ranking {
  float* values;
  int64_t *labels, count;

  INLINE void clear() { std::fill(values, values + count, -INFINITE); }
  INLINE float least() const { return values[count - 1]; }
  INLINE void offer(float value, int64_t label) {
    if (!(value > least())) return;
    int64_t k = count - 1;
    for (; k > 0 && value > values[k - 1]; --k) values[k] = values[k - 1], labels[k] = labels[k - 1];
    values[k] = value, labels[k] = label;
  }
};

struct Continuations {
  const float *logits, *score;  // (S, W, V), (S, W)
  const bool* never;        // (V,)
  int64_t width, vocabulary, each, most;
  float* value;             // (S, most)
  int64_t *token, *parent;  // (S, most)

  // `each` best tokens of a hypothesis.
  INLINE float rank(const float* row, float* tops, Ranking ranking) const {
    const int64_t blocks = (vocabulary + BLOCK - 1) / BLOCK;
    for (int64_t b = 0; b < blocks; ++b) tops[b] = largest(row + b * BLOCK, std::min(BLOCK, vocabulary - b * BLOCK));
    const float top = largest(tops, blocks), sum = sum_exponentials(row, vocabulary, top);
    ranking.clear();
    for (int64_t b = 0; b < blocks; ++b) {
      if (!(tops[b] > ranking.least())) continue;
      for (int64_t v = b * BLOCK; v < std::min((b + 1) * BLOCK, vocabulary); ++v)
        if (!never[v]) ranking.offer(row[v], v);
    }
    return top + float(std::log(double(sum)));
  }

  INLINE void choose(int64_t s, float* tops, Ranking own, Ranking all) const {
    all.clear();
    std::fill(all.labels, all.labels + most, 0);
    std::vector<int64_t> tokens(width * each);
    for (int64_t w = 0; w < width; ++w) {
      const int64_t row = s * width + w;
      own.labels = tokens.data() + w * each;
      const float lse = rank(logits + row * vocabulary, tops, own);
      for (int64_t k = 0; k < each; ++k) all.offer(score[row] + (own.values[k] - lse), w * each + k);
    }
    for (int64_t k = 0; k < most; ++k) {
      value[s * most + k] = all.values[k];
      token[s * most + k] = tokens[all.labels[k]];
      parent[s * most + k] = all.labels[k] / each;
    }
  }
};

EVERY_PROCESSOR void run(const Continuations& all, int64_t begin, int64_t end, float* memory, int64_t* labels) {
  const int64_t blocks = (all.vocabulary + BLOCK - 1) / BLOCK;
  for (int64_t s = begin; s < end; ++s)
    all.choose(s, memory, {memory + blocks, nullptr, all.each}, {memory + blocks + all.each, labels, all.most});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> best(const at::Tensor& logits, const at::Tensor& score, int64_t count, const at::Tensor& never) {
  const at::Tensor rows = logits.contiguous(), before = score.contiguous();
  const int64_t sentences = rows.size(0), width = rows.size(1), vocabulary = rows.size(2);
  TORCH_CHECK(never.numel() == vocabulary && before.numel() == sentences * width, "best: score (S, W) and never (V,)");
  const int64_t each = std::min(count, vocabulary - 1), most = std::min(count, width * each);
  const at::Tensor value = at::empty({sentences, most}, score.options());
  const at::Tensor token = at::empty({sentences, most}, score.options().dtype(at::kLong)), parent = at::empty(token.sizes(), token.options());
  const Continuations all{rows.const_data_ptr<float>(), before.const_data_ptr<float>(), never.const_data_ptr<bool>(), width,
                          vocabulary, each, most, value.data_ptr<float>(), token.data_ptr<int64_t>(), parent.data_ptr<int64_t>()};
  at::parallel_for(0, sentences, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> memory((vocabulary + BLOCK - 1) / BLOCK + each + most);
    std::vector<int64_t> labels(most);
    run(all, begin, end, memory.data(), labels.data());
  });
  return {value, token, parent};
}

}  // namespace synmask

TORCH_LIBRARY_FRAGMENT(synmask, library) {
  library.def("attend(Tensor query, Tensor memory, int heads, Tensor rows, Tensor? path, Tensor? bias) -> Tensor");
  library.def("attend_own(Tensor made, Tensor(a!) memory, int heads, Tensor rows, Tensor path, Tensor? bias) -> Tensor");
  library.def("best(Tensor logits, Tensor score, int count, Tensor never) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(synmask, CPU, library) {
  library.impl("attend", &synmask::attend);
  library.impl("attend_own", &synmask::attend_own);
  library.impl("best", &synmask::best);
}

// Importing the module registers the operators; SOURCE tells from which text they were built.
PyMODINIT_FUNC PyInit_kernel() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "kernel", nullptr, -1, nullptr};
  PyObject* module = PyModule_Create(&definition);
  if (module) PyModule_AddStringConstant(module, "SOURCE", SOURCE);
  return module;
}
