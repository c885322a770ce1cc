// Beam search on a CPU: attention along the paths of hypotheses (cached_attention.py), their best continuations
// (continuations.py), and both with all that lies between them (fused.py), by AVX-512 or AVX2. Tensors are float32;
// weights may be in bfloat16 there.
//
// The bytes of the results do not depend on the number of threads: one thread computes a sentence, and every sum has
// a fixed order. Without fused.py's, they do not depend on the processor: exp is our own, and products are not fused
// with sums (kernels.py).

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
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
#define FUSED
#include <immintrin.h>
#else
#define EVERY_PROCESSOR
#endif
#define INLINE_LAMBDA __attribute__((always_inline))

namespace synmask {

constexpr int64_t WIDE = 16;   // numbers that are added up side by side
constexpr int64_t BLOCK = 64;  // logits that are looked at together
constexpr float INFINITE = std::numeric_limits<float>::infinity();

template <int64_t LANES>
struct Vectors {
  using Floats __attribute__((vector_size(LANES * sizeof(float)), aligned(alignof(float)), may_alias)) = float;
  using Whole __attribute__((vector_size(LANES * sizeof(float)))) = int32_t;
};
template <int64_t LANES>
using Floats = typename Vectors<LANES>::Floats;

template <int64_t LANES>
INLINE Floats<LANES> load(const float* x) {
  return *reinterpret_cast<const Floats<LANES>*>(x);
}
template <class V>
INLINE void store(float* x, V value) {
  *reinterpret_cast<Floats<sizeof(V) / sizeof(float)>*>(x) = value;
}
template <class V>
INLINE V larger(V x, V y) {
  return x > y ? x : y;
}

// e^x to the last bits, for x <= 0; e^-87 below -87; NaN for NaN.
template <class V>
INLINE V exponential(V x) {
  using Whole = typename Vectors<sizeof(V) / sizeof(float)>::Whole;
  constexpr float shift = 12582912;  // x + shift is rounded to a whole number
  x = x < -87 ? V{} - 87 : x;        // NaN stays
  const V shifted = x * 1.44269504088896341f + shift, power = shifted - shift;
  const V rest = (x - power * 0.693359375f) - power * -2.12194440e-4f;
  V sum = rest * (1 / 5040.f) + 1 / 720.f;  // the Taylor series, by Horner's rule
  for (const float factor : {1 / 120.f, 1 / 24.f, 1 / 6.f, 1 / 2.f, 1.f, 1.f}) sum = rest * sum + factor;
  return sum * std::bit_cast<V>((std::bit_cast<Whole>(shifted) + 127) << 23);
}

template <class V>
INLINE auto low(V x) {
  if constexpr (sizeof(V) == 64) return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
  else return __builtin_shufflevector(x, x, 0, 1, 2, 3);
}
template <class V>
INLINE auto high(V x) {
  if constexpr (sizeof(V) == 64) return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  else return __builtin_shufflevector(x, x, 4, 5, 6, 7);
}

template <class V>
INLINE float total(V x) {
  if constexpr (sizeof(V) > 16) return total(low(x) + high(x));
  else return (x[0] + x[2]) + (x[1] + x[3]);
}

template <class V>
INLINE float largest(V x) {
  if constexpr (sizeof(V) > 16) return largest(larger(low(x), high(x)));
  else return std::max(std::max(x[0], x[2]), std::max(x[1], x[3]));
}

// The first `count` numbers, and `rest` in the other places.
template <int64_t LANES>
INLINE Floats<LANES> load_some(const float* x, int64_t count, float rest) {
  float all[LANES];
  std::fill(all, all + LANES, rest);
  std::copy_n(x, count, all);
  return load<LANES>(all);
}

INLINE int64_t filled(int64_t count) { return (count + WIDE - 1) / WIDE * WIDE; }

template <int64_t LANES>
INLINE float dot(const float* x, const float* y, int64_t count) {
  Floats<LANES> sums = {};
  int64_t k = 0;
  for (; k + LANES <= count; k += LANES) sums += load<LANES>(x + k) * load<LANES>(y + k);
  if (k < count) sums += load_some<LANES>(x + k, count - k, 0) * load_some<LANES>(y + k, count - k, 0);
  return total(sums);
}

template <int64_t LANES>
INLINE float largest(const float* x, int64_t count) {
  Floats<LANES> tops = Floats<LANES>{} - INFINITE;
  int64_t k = 0;
  for (; k + LANES <= count; k += LANES) tops = larger(load<LANES>(x + k), tops);
  if (k < count) tops = larger(load_some<LANES>(x + k, count - k, -INFINITE), tops);
  return largest(tops);
}

// The sum of e^(x - top).
template <int64_t LANES>
INLINE float sum_exponentials(const float* x, int64_t count, float top) {
  Floats<LANES> sums = {};
  int64_t k = 0;
  for (; k + LANES <= count; k += LANES) sums += exponential(load<LANES>(x + k) - top);
  float sum = total(sums);
  if (k < count) {
    const Floats<LANES> rest = exponential(load_some<LANES>(x + k, count - k, top) - top);
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

  template <int64_t LANES>
  INLINE void attend(int64_t s, int64_t w, float* scores) const {
    const int64_t d = heads * head;
    const float *own = query + s * query_sentence + w * query_row, *keys = memory + rows[s] * memory_row;
    const int64_t* slots = path ? path + (s * width + w) * length : nullptr;
    const float scale = 1 / std::sqrt(float(head));
    const int64_t room = filled(length);
    for (int64_t j = 0; j < length; ++j) {
      const float* key = keys + (slots ? slots[j] : j) * memory_slot;
      for (int64_t h = 0; h < heads; ++h) scores[h * room + j] = dot<LANES>(own + h * head, key + h * head, head) * scale;
    }
    for (int64_t h = 0; h < heads; ++h) {
      float *weights = scores + h * room, *result = out + (s * width + w) * d + h * head;
      std::fill(weights + length, weights + room, -INFINITE);
      if (bias) {
        const float* more = bias + s * bias_strides[0] + h * bias_strides[1] + w * bias_strides[2];
        for (int64_t j = 0; j < length; ++j) weights[j] += more[j * bias_strides[3]];
      }
      const float top = largest<LANES>(weights, room);
      Floats<LANES> sums = {};
      for (int64_t j = 0; j < room; j += LANES) {
        const Floats<LANES> weight = exponential(load<LANES>(weights + j) - top);
        sums += weight;
        store(weights + j, weight);
      }
      mix<LANES>(result, keys + d + h * head, slots, weights, 1 / total(sums));
    }
  }

 private:
  // result (head) = the mean of the rows of `values` by `weights` (t).
  template <int64_t LANES>
  INLINE void mix(float* result, const float* values, const int64_t* slots, const float* weights, float factor) const {
    int64_t e = 0;
    for (; e + 2 * LANES <= head; e += 2 * LANES) {
      Floats<LANES> sums = {}, more = {};
      for (int64_t j = 0; j < length; ++j) {
        const float* row = values + (slots ? slots[j] : j) * memory_slot + e;
        sums += weights[j] * load<LANES>(row), more += weights[j] * load<LANES>(row + LANES);
      }
      store(result + e, sums * factor), store(result + e + LANES, more * factor);
    }
    for (; e + LANES <= head; e += LANES) {
      Floats<LANES> sums = {};
      for (int64_t j = 0; j < length; ++j) sums += weights[j] * load<LANES>(values + (slots ? slots[j] : j) * memory_slot + e);
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
    for (int64_t w = 0; w < attention.width; ++w) attention.attend<WIDE>(s, w, memory);
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
    std::vector<float> scores(heads * filled(length));
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

// `Paths.longer`: the paths (S, W, t + 1) from (S, W, t), and how many slots a row needs; it needed `size`.
std::tuple<at::Tensor, int64_t> longer(const at::Tensor& path, int64_t size) {
  const at::Tensor before = path.contiguous();
  const int64_t sentences = before.size(0), width = before.size(1), length = before.size(2);
  const at::Tensor after = at::empty({sentences, width, length + 1}, path.options());
  const int64_t* old = before.const_data_ptr<int64_t>();
  int64_t* made = after.data_ptr<int64_t>();
  std::vector<char> used(size + width);
  int64_t most = size;
  for (int64_t s = 0; s < sentences; ++s) {
    std::fill(used.begin(), used.end(), 0);
    for (const int64_t* end = old + width * length, *slot = old; slot < end; ++slot) used[*slot] = 1;
    int64_t free = 0;
    for (int64_t w = 0; w < width; ++w, ++free) {
      made = std::copy_n(old, length, made), old += length;
      while (used[free]) ++free;
      *made++ = free;
    }
    most = std::max(most, free);
  }
  return {after, most};
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
  const float *logits, *score;  // (S, W, V), its rows `stride` apart; (S, W)
  const bool* never;        // (V,)
  int64_t width, vocabulary, stride, most;
  float* value;             // (S, most)
  int64_t *token, *parent;  // (S, most)

  // The best of a sentence; tops: room for the largest logit of each block.
  template <int64_t LANES>
  INLINE void choose(int64_t s, float* tops, Ranking best) const {
    best.clear();
    std::fill(best.labels, best.labels + most, 0);
    const int64_t blocks = (vocabulary + BLOCK - 1) / BLOCK;
    for (int64_t w = 0; w < width; ++w) {
      const float *row = logits + (s * width + w) * stride, before = score[s * width + w];
      for (int64_t b = 0; b < blocks; ++b) tops[b] = largest<LANES>(row + b * BLOCK, std::min(BLOCK, vocabulary - b * BLOCK));
      const float top = largest<LANES>(tops, blocks), all = top + float(std::log(double(sum_exponentials<LANES>(row, vocabulary, top))));
      for (int64_t b = 0; b < blocks; ++b) {
        if (!(before + (tops[b] - all) > best.least())) continue;
        for (int64_t v = b * BLOCK; v < std::min((b + 1) * BLOCK, vocabulary); ++v)
          if (!never[v]) best.offer(before + (row[v] - all), w * vocabulary + v);
      }
    }
    for (int64_t k = 0; k < most; ++k) {
      value[s * most + k] = best.values[k];
      token[s * most + k] = best.labels[k] % vocabulary;
      parent[s * most + k] = best.labels[k] / vocabulary;
    }
  }
};

EVERY_PROCESSOR void run(const Continuations& all, int64_t begin, int64_t end, float* tops, Ranking best) {
  for (int64_t s = begin; s < end; ++s) all.choose<WIDE>(s, tops, best);
}

// Room for `best` of a sentence.
struct Room {
  std::vector<float> tops, values;
  std::vector<int64_t> labels;

  explicit Room(const Continuations& all) : tops((all.vocabulary + BLOCK - 1) / BLOCK), values(all.most), labels(all.most) {}
  Ranking ranking() { return {values.data(), labels.data(), int64_t(values.size())}; }
};

// Scores, tokens and parents, and what makes them from the logits of sentences.
struct Best {
  at::Tensor value, token, parent;
  Continuations all;

  Best(const at::Tensor& score, int64_t count, const at::Tensor& never, int64_t stride) {
    const int64_t sentences = score.size(0), width = score.size(1), vocabulary = never.numel();
    const int64_t most = std::min(count, width * (vocabulary - 1));
    TORCH_CHECK(score.is_contiguous() && never.is_contiguous() && vocabulary <= stride, "best: score (S, W) and never (V,)");
    value = at::empty({sentences, most}, score.options());
    token = at::empty({sentences, most}, score.options().dtype(at::kLong)), parent = at::empty(token.sizes(), token.options());
    all = {nullptr, score.const_data_ptr<float>(), never.const_data_ptr<bool>(), width, vocabulary, stride, most,
           value.data_ptr<float>(), token.data_ptr<int64_t>(), parent.data_ptr<int64_t>()};
  }
};

std::tuple<at::Tensor, at::Tensor, at::Tensor> best(const at::Tensor& logits, const at::Tensor& score, int64_t count, const at::Tensor& never) {
  const at::Tensor rows = logits.contiguous(), before = score.contiguous();
  TORCH_CHECK(rows.size(2) == never.numel() && rows.numel() == score.numel() * never.numel(), "best: logits (S, W, V)");
  Best made(before, count, never, rows.size(2));
  made.all.logits = rows.const_data_ptr<float>();
  at::parallel_for(0, rows.size(0), 1, [&](int64_t begin, int64_t end) {
    Room room(made.all);
    run(made.all, begin, end, room.tops.data(), room.ranking());
  });
  return {made.value, made.token, made.parent};
}

// All of a step between the embedding of the last tokens and their best continuations, on 16 LANES (AVX-512)
// or 8 (AVX2). Groups of sentences pass through it one after the other, so that what is computed stays in the caches.
#ifdef FUSED
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#define AVX512 __attribute__((target("arch=x86-64-v4")))
#define AVX2 __attribute__((target("avx2,fma")))

constexpr int64_t PANEL = 32;  // columns of a product that lie together
constexpr int64_t GROUP = 96;  // rows, about
// Rows of a product that are computed together, with two vectors of columns: as many as there are registers for sums.
template <int64_t LANES>
constexpr int64_t TILE = LANES == 16 ? 8 : 6;

// sums (R, C * LANES) = x (R, k) times y (k, C * LANES)
template <int64_t LANES, int R, int C>
INLINE void tile(const float* x, int64_t x_row, const float* y, int64_t y_row, int64_t k, Floats<LANES> (&sums)[R][C]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int c = 0; c < C; ++c) sums[r][c] = Floats<LANES>{};
  for (int64_t j = 0; j < k; ++j) {
    Floats<LANES> right[C];
#pragma GCC unroll 2
    for (int c = 0; c < C; ++c) right[c] = load<LANES>(y + j * y_row + c * LANES);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int c = 0; c < C; ++c) sums[r][c] += x[r * x_row + j] * right[c];
  }
}

// Calls `tiled<R>(row)` for tiles of R <= TILE of the rows.
template <int64_t LANES, class Tiled>
INLINE void by_tiles(int64_t rows, Tiled tiled) {
  int64_t row = 0;
  for (; row + TILE<LANES> <= rows; row += TILE<LANES>) tiled.template operator()<TILE<LANES>>(row);
  switch (rows - row) {
    case 1: return tiled.template operator()<1>(row);
    case 2: return tiled.template operator()<2>(row);
    case 3: return tiled.template operator()<3>(row);
    case 4: return tiled.template operator()<4>(row);
    case 5: return tiled.template operator()<5>(row);
    case 6: return tiled.template operator()<6>(row);
    case 7: return tiled.template operator()<7>(row);
  }
}

#define AVX512_BF16 __attribute__((target("arch=x86-64-v4,avx512bf16")))
using Pair = int32_t;  // two numbers in bfloat16

// x (rows, count) in bfloat16; count is a multiple of PANEL.
AVX512_BF16 inline void to_pairs(const float* x, int64_t x_row, int64_t rows, int64_t count, Pair* out) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < count; k += PANEL, out += WIDE) {
      const __m512 first = _mm512_loadu_ps(x + r * x_row + k), second = _mm512_loadu_ps(x + r * x_row + k + WIDE);
      _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(second, first));
    }
}

// What becomes of a tile of a product: it joins the bias and `plus`, or is cut off at 0.
struct Finish {
  float* out;
  const float *bias, *plus;
  bool relu;
  int64_t to;  // from row to row

  template <int64_t LANES, int R>
  INLINE void run(const Floats<LANES> (&sums)[R][2], int64_t row, int64_t panel, int64_t column) const {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int c = 0; c < 2; ++c) {
        const int64_t beside = column + c * LANES, place = (row + r) * to + panel + beside;
        Floats<LANES> value = sums[r][c] + load<LANES>(bias + beside);
        if (plus) value += load<LANES>(plus + place);
        if (relu) value = larger(value, Floats<LANES>{});
        store(out + place, value);
      }
  }
};

// x (R, k) times y (k, PANEL), both in pairs; the products are added in float32.
template <int R>
AVX512_BF16 void tile_of_pairs(const Pair* x, const float* y, int64_t k, const Finish& finish, int64_t row, int64_t panel) {
  Floats<WIDE> sums[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = Floats<WIDE>{};
  for (int64_t j = 0; j < k; ++j) {
    const __m512bh first = (__m512bh)load<WIDE>(y + j * PANEL), second = (__m512bh)load<WIDE>(y + j * PANEL + WIDE);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512bh pair = (__m512bh)_mm512_set1_epi32(x[r * k + j]);
      sums[r][0] = (Floats<WIDE>)_mm512_dpbf16_ps((__m512)sums[r][0], pair, first);
      sums[r][1] = (Floats<WIDE>)_mm512_dpbf16_ps((__m512)sums[r][1], pair, second);
    }
  }
  finish.run<WIDE, R>(sums, row, panel, 0);
}

// A linear layer, as `Products.panels` orders it: for each panel of its outputs the weights, a line of PANEL for each
// input or for each pair of inputs in bfloat16, then the bias.
struct Linear {
  const float* packed;
  bool paired;
  int64_t lines, from, count;  // lines of weights; inputs; panels

  explicit Linear(const at::Tensor& x)
      : packed(static_cast<const float*>(x.const_data_ptr())), paired(x.scalar_type() == at::kBFloat16), lines(x.size(1) - 1),
        from(paired ? 2 * lines : lines), count(x.size(0)) {
    TORCH_CHECK(x.is_contiguous() && x.size(2) == (paired ? 2 : 1) * PANEL && (paired || x.scalar_type() == at::kFloat), "packed: order");
  }
  int64_t to() const { return count * PANEL; }

  // out (rows, to) = x (rows, from) by the layer, plus `plus` (rows, to), or cut off at 0
  template <int64_t LANES>
  INLINE void run(const float* x, int64_t x_row, int64_t rows, float* out, const float* plus, bool relu) const {
    static thread_local std::vector<Pair> pairs;
    if (paired) {
      pairs.resize(rows * lines);
      to_pairs(x, x_row, rows, from, pairs.data());
    }
    for (int64_t panel = 0; panel < count; ++panel) {
      const float *weight = packed + panel * (lines + 1) * PANEL, *bias = weight + lines * PANEL;
      const Finish finish{out, bias, plus, relu, to()};
      by_tiles<LANES>(rows, [&]<int R>(int64_t row) INLINE_LAMBDA {
        if constexpr (LANES == WIDE)
          if (paired) return tile_of_pairs<R>(pairs.data() + row * lines, weight, lines, finish, row, panel * PANEL);
        for (int64_t column = 0; column < PANEL; column += 2 * LANES) {
          Floats<LANES> sums[R][2];
          tile<LANES, R, 2>(x + row * x_row, x_row, weight + column, PANEL, from, sums);
          finish.run<LANES, R>(sums, row, panel * PANEL, column);
        }
      });
    }
  }
};

struct Norm {
  const float *gain, *shift;
  double eps;

  template <int64_t LANES>
  INLINE void run(float* x, int64_t rows, int64_t d) const {
    for (float* row = x; row < x + rows * d; row += d) {
      Floats<LANES> sums = {}, squares = {};
      for (int64_t k = 0; k < d; k += LANES) sums += load<LANES>(row + k);
      const float mean = total(sums) / d;
      for (int64_t k = 0; k < d; k += LANES) squares += (load<LANES>(row + k) - mean) * (load<LANES>(row + k) - mean);
      const float factor = 1 / std::sqrt(float(total(squares) / d + eps));
      for (int64_t k = 0; k < d; k += LANES) store(row + k, (load<LANES>(row + k) - mean) * factor * load<LANES>(gain + k) + load<LANES>(shift + k));
    }
  }
};

// W queries of a sentence attend to its source: keys (d, n), values (n, d), what is added to the scores
// (n); n is a multiple of WIDE.
template <int64_t LANES>
INLINE void attend_source(const float* query, int64_t width, int64_t heads, int64_t d, const float* keys, const float* values,
                          const float* bias, int64_t n, float* scores, float* out) {
  const int64_t head = d / heads;
  const float scale = 1 / std::sqrt(float(head));
  for (int64_t h = 0; h < heads; ++h)
    by_tiles<LANES>(width, [&]<int R>(int64_t w) INLINE_LAMBDA {
      Floats<LANES> tops[R], sums[R][1];
      float factors[R];
      for (int r = 0; r < R; ++r) tops[r] = Floats<LANES>{} - INFINITE;
      for (int64_t j = 0; j < n; j += LANES) {
        tile<LANES, R, 1>(query + w * d + h * head, d, keys + h * head * n + j, n, head, sums);
        for (int r = 0; r < R; ++r) {
          const Floats<LANES> score = sums[r][0] * scale + load<LANES>(bias + j);
          tops[r] = larger(score, tops[r]);
          store(scores + r * n + j, score);
        }
      }
      for (int r = 0; r < R; ++r) {
        const float top = largest(tops[r]);
        Floats<LANES> all = {};
        for (int64_t j = 0; j < n; j += LANES) {
          const Floats<LANES> weight = exponential(load<LANES>(scores + r * n + j) - top);
          all += weight;
          store(scores + r * n + j, weight);
        }
        factors[r] = 1 / total(all);
      }
      for (int64_t e = 0; e < head; e += LANES) {
        tile<LANES, R, 1>(scores, n, values + h * head + e, d, n, sums);
        for (int r = 0; r < R; ++r) store(out + (w + r) * d + h * head + e, sums[r][0] * factors[r]);
      }
    });
}

// Calls `work(group, each)` on each thread; `each(f)` calls f(begin, end) for groups of sentences with W rows each.
template <class Work>
void by_groups(int64_t sentences, int64_t width, Work work) {
  const int64_t group = std::max<int64_t>(1, GROUP / width);
  at::parallel_for(0, (sentences + group - 1) / group, 1, [&](int64_t first, int64_t last) {
    work(group, [&](auto f) {
      for (int64_t g = first; g < last; ++g) f(g * group, std::min(sentences, (g + 1) * group));
    });
  });
}

// The end of a layer (post-norm): what was attended to joins x, then the feed-forward part.
struct Tail {
  Linear joined, wider, narrower;
  Norm first, second;

  int64_t room() const { return wider.to(); }  // of a row

  template <int64_t LANES>
  INLINE void run(const float* context, const float* x, int64_t rows, float* out, float* hidden) const {
    const int64_t d = joined.from;
    joined.run<LANES>(context, d, rows, out, x, false);
    first.run<LANES>(out, rows, d);
    wider.run<LANES>(out, d, rows, hidden, nullptr, true);
    narrower.run<LANES>(hidden, wider.to(), rows, out, out, false);
    second.run<LANES>(out, rows, d);
  }
};

// layers: packed; norms: gains and shifts
Tail tail_of(at::TensorList layers, at::TensorList norms, double eps) {
  const auto norm = [&](int k) { return Norm{norms[k].const_data_ptr<float>(), norms[k + 1].const_data_ptr<float>(), eps}; };
  return {Linear(layers[0]), Linear(layers[1]), Linear(layers[2]), norm(0), norm(2)};
}

// A decoder layer (post-norm) for the last tokens of S sentences with W hypotheses.
struct Layer {
  Attention own;  // without query and out
  Linear project, joined, asking;
  Norm norm;
  Tail tail;
  const float *x, *keys, *values, *source_bias;  // (S, W, d); of each row (d, n), (n, d), (n)
  float* out;                                    // (S, W, d)
  int64_t n;

  int64_t room(int64_t group) const {
    const int64_t d = project.from, rows = own.width * group;
    return rows * (project.to() + 2 * d + tail.room()) + std::max(own.heads * filled(own.length), 8 * n);
  }

  template <int64_t LANES>
  INLINE void run(int64_t begin, int64_t end, float* made) const {
    const int64_t d = project.from, width = own.width, rows = (end - begin) * width;
    float *context = made + rows * project.to(), *state = context + rows * d, *hidden = state + rows * d, *scores = hidden + rows * tail.room();
    const float* input = x + begin * width * d;
    project.run<LANES>(input, d, rows, made, nullptr, false);
    Attention mine = own;
    mine.query = made, mine.out = context, mine.rows += begin, mine.path += begin * width * own.length;
    mine.query_row = project.to(), mine.query_sentence = width * project.to();
    if (mine.bias) mine.bias += begin * own.bias_strides[0];
    for (int64_t s = 0; s < end - begin; ++s) {
      mine.remember(s);
      for (int64_t w = 0; w < width; ++w) mine.attend<LANES>(s, w, scores);
    }
    joined.run<LANES>(context, d, rows, state, input, false);
    norm.run<LANES>(state, rows, d);
    asking.run<LANES>(state, d, rows, made, nullptr, false);
    for (int64_t s = 0; s < end - begin; ++s) {
      const int64_t row = mine.rows[s];
      attend_source<LANES>(made + s * width * d, width, own.heads, d, keys + row * d * n, values + row * n * d, source_bias + row * n, n, scores,
                    context + s * width * d);
    }
    tail.run<LANES>(context, state, rows, out + begin * width * d, hidden);
  }
};

AVX512 void step_16(const Layer& layer, int64_t begin, int64_t end, float* room) { layer.run<16>(begin, end, room); }
AVX2 void step_8(const Layer& layer, int64_t begin, int64_t end, float* room) { layer.run<8>(begin, end, room); }

void check_lanes(int64_t lanes, const at::Tensor& packed) {
  TORCH_CHECK(lanes == 16 || (lanes == 8 && packed.scalar_type() == at::kFloat), "lanes: 16, or 8 in float32");
}

// layers: of the tail, then the own projections, joined, asking
at::Tensor layer(const at::Tensor& x, at::TensorList layers, at::TensorList norms, double eps, at::Tensor memory, const at::Tensor& keys,
                 const at::Tensor& values, const at::Tensor& source_bias, int64_t heads, const at::Tensor& rows, const at::Tensor& path,
                 const std::optional<at::Tensor>& bias, int64_t lanes) {
  const at::Tensor input = x.contiguous(), slots = path.contiguous(), out = at::empty(input.sizes(), input.options());
  const int64_t sentences = input.size(0), width = input.size(1), d = input.size(2), n = keys.size(2), length = slots.size(2);
  TORCH_CHECK(layers.size() == 6 && norms.size() == 6 && d % PANEL == 0 && d / heads % WIDE == 0 && n % WIDE == 0, "layer: sizes");
  check_lanes(lanes, layers[0]);
  TORCH_CHECK(keys.is_contiguous() && values.is_contiguous() && source_bias.is_contiguous() && memory.stride(2) == 1, "layer: order in memory");
  TORCH_CHECK(rows.numel() == sentences && rows.is_contiguous() && slots.size(0) == sentences && slots.size(1) == width, "layer: paths");
  Layer all{{nullptr, nullptr, memory.data_ptr<float>(), rows.const_data_ptr<int64_t>(), slots.const_data_ptr<int64_t>(), nullptr, width,
             heads, d / heads, length, 0, 0, memory.stride(0), memory.stride(1), {}},
            Linear(layers[3]), Linear(layers[4]), Linear(layers[5]), {norms[4].const_data_ptr<float>(), norms[5].const_data_ptr<float>(), eps},
            tail_of(layers, norms, eps), input.const_data_ptr<float>(), keys.const_data_ptr<float>(), values.const_data_ptr<float>(),
            source_bias.const_data_ptr<float>(), out.data_ptr<float>(), n};
  at::Tensor more;
  if (bias) {
    more = bias->expand({sentences, heads, width, length});
    all.own.bias = more.const_data_ptr<float>();
    std::copy_n(more.strides().begin(), 4, all.own.bias_strides);
  }
  by_groups(sentences, width, [&](int64_t group, auto each) {
    std::vector<float> room(all.room(group));
    each([&](int64_t begin, int64_t end) { (lanes == 16 ? step_16 : step_8)(all, begin, end, room.data()); });
  });
  return out;
}

template <int64_t LANES>
INLINE void end_step(const Linear& project, Continuations all, const float* x, int64_t begin, int64_t end, float* logits, Room& room) {
  project.run<LANES>(x + begin * all.width * project.from, project.from, (end - begin) * all.width, logits, nullptr, false);
  all.logits = logits, all.score += begin * all.width;
  all.value += begin * all.most, all.token += begin * all.most, all.parent += begin * all.most;
  for (int64_t s = 0; s < end - begin; ++s) all.choose<LANES>(s, room.tops.data(), room.ranking());
}

AVX512 void end_16(const Linear& project, const Continuations& all, const float* x, int64_t begin, int64_t end, float* logits, Room& room) {
  end_step<16>(project, all, x, begin, end, logits, room);
}
AVX2 void end_8(const Linear& project, const Continuations& all, const float* x, int64_t begin, int64_t end, float* logits, Room& room) {
  end_step<8>(project, all, x, begin, end, logits, room);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> best_after(const at::Tensor& x, const at::Tensor& packed, const at::Tensor& score, int64_t count,
                                                          const at::Tensor& never, int64_t lanes) {
  const at::Tensor input = x.contiguous(), before = score.contiguous();
  const int64_t sentences = input.size(0), width = input.size(1);
  const Linear project(packed);
  check_lanes(lanes, packed);
  TORCH_CHECK(input.size(2) == project.from && before.numel() == sentences * width, "best_after: sizes");
  const Best made(before, count, never, project.to());
  by_groups(sentences, width, [&](int64_t group, auto each) {
    const at::Tensor logits = at::empty({group * width, project.to()}, input.options());
    Room room(made.all);
    each([&](int64_t begin, int64_t end) {
      (lanes == 16 ? end_16 : end_8)(project, made.all, input.const_data_ptr<float>(), begin, end, logits.data_ptr<float>(), room);
    });
  });
  return {made.value, made.token, made.parent};
}

#pragma GCC pop_options
#endif

}  // namespace synmask

TORCH_LIBRARY_FRAGMENT(synmask, library) {
  library.def("attend(Tensor query, Tensor memory, int heads, Tensor rows, Tensor? path, Tensor? bias) -> Tensor");
  library.def("attend_own(Tensor made, Tensor(a!) memory, int heads, Tensor rows, Tensor path, Tensor? bias) -> Tensor");
#ifdef FUSED
  library.def(
      "layer(Tensor x, Tensor[] layers, Tensor[] norms, float eps, Tensor(a!) memory, Tensor keys, Tensor values, Tensor source_bias, int heads, "
      "Tensor rows, Tensor path, Tensor? bias, int lanes) -> Tensor");
  library.def("best_after(Tensor x, Tensor packed, Tensor score, int count, Tensor never, int lanes) -> (Tensor, Tensor, Tensor)");
#endif
  library.def("longer(Tensor path, int size) -> (Tensor, int)");
  library.def("best(Tensor logits, Tensor score, int count, Tensor never) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(synmask, CPU, library) {
  library.impl("attend", &synmask::attend);
  library.impl("attend_own", &synmask::attend_own);
  library.impl("longer", &synmask::longer);
  library.impl("best", &synmask::best);
#ifdef FUSED
  library.impl("layer", &synmask::layer);
  library.impl("best_after", &synmask::best_after);
#endif
}

extern "C" {
extern const char source[];
const char source[] = SOURCE;  // tells from what it was built
}
