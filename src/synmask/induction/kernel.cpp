// P_D and its gradients on a CPU, one sentence at a time (distribution.py; docs/method.md).
//
// The bytes of the results do not depend on the processor or on the number of threads: one thread computes a
// sentence, every sum has a fixed order, exp is our own, and products are not fused with sums (kernels.py).
//
// It needs neither PyTorch nor Python: operators.py calls its C functions. One build serves all versions of both.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#define INLINE inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define EVERY_PROCESSOR __attribute__((target_clones("avx2", "default")))  // the same sums, more of them at once
#else
#define EVERY_PROCESSOR
#endif

namespace synmask {

constexpr int64_t TALL = 4;   // rows of a tile
constexpr int64_t WIDE = 8;   // columns of a tile; the rows of a matrix begin at multiples of it

template <typename T>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  using Row __attribute__((vector_size(WIDE * sizeof(float)), may_alias)) = float;
  static constexpr int mantissa = 23, bias = 127, degree = 7;
  static constexpr float lowest = -87, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  using Row __attribute__((vector_size(WIDE * sizeof(double)), may_alias)) = double;
  static constexpr int mantissa = 52, bias = 1023, degree = 13;
  static constexpr double lowest = -708, ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
};

// e^x to the last bits; infinity above the type's range, e^lowest below it, NaN for NaN.
template <typename T>
INLINE T exponential(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  constexpr T highest = (F::bias + 1) * T(0.693147180559945309);
  constexpr T shift = 3 * T(Bits(1) << (F::mantissa - 1));  // x + shift is rounded to a whole number
  x = x < F::lowest ? F::lowest : x;
  x = x > highest ? highest : x;
  const T shifted = x * T(1.44269504088896341) + shift, power = shifted - shift;
  const T rest = (x - power * F::ln2_high) - power * F::ln2_low;
  T sum = 1;  // the Taylor series, by Horner's rule
  for (int k = F::degree; k > 0; --k) sum = 1 + rest * sum * (1 / T(k));
  return sum * std::bit_cast<T>(Bits((std::bit_cast<Bits>(shifted) + F::bias) << F::mantissa));
}

template <typename T>
INLINE T sigmoid(T x) {
  return 1 / (1 + exponential(-x));
}

// The larger one; NaN if x or y is.
template <typename T>
INLINE T larger(T x, T y) {
  return (x >= y) | (x != x) ? x : y;
}

template <typename T>
INLINE T total(const T* x, int64_t count) {
  T sums[WIDE] = {};
  const int64_t whole = count / WIDE * WIDE;
  for (int64_t k = 0; k < whole; k += WIDE)
    for (int64_t lane = 0; lane < WIDE; ++lane) sums[lane] += x[k + lane];
  for (int64_t k = whole; k < count; ++k) sums[k - whole] += x[k];
  T sum = 0;
  for (const T part : sums) sum += part;
  return sum;
}

// out (TALL, WIDE) += x (TALL, count) y (count, WIDE); rows of out and y are `stride` apart.
template <typename T>
INLINE void add_product(T* out, const T* x, int64_t x_row, int64_t x_column, const T* y, int64_t stride, int64_t count) {
  using Row = typename Format<T>::Row;
  Row sums[TALL];
  for (int64_t row = 0; row < TALL; ++row) sums[row] = *reinterpret_cast<const Row*>(out + row * stride);
  for (int64_t k = 0; k < count; ++k) {
    const Row factor = *reinterpret_cast<const Row*>(y + k * stride);
    for (int64_t row = 0; row < TALL; ++row) sums[row] += x[row * x_row + k * x_column] * factor;
  }
  for (int64_t row = 0; row < TALL; ++row) *reinterpret_cast<Row*>(out + row * stride) = sums[row];
}

// What P_D is computed from: B sentences of `length` tokens, pads included.
template <typename T>
struct Batch {
  const T *distance, *height;  // (B, length-1), (B, length)
  const bool* padding;         // (B, length), or null
  int64_t size, length;
  T distance_scale, height_scale, reach;
};

template <typename T>
struct Gradients {
  T *distance, *height, *distance_scale, *height_scale;  // (B, length-1), (B, length), (B), (B)
};

// One sentence of n real tokens, the first at place `first` of its row. Matrices are (n, n); names as in
// docs/method.md. Entries (i, l) of `left`, `from_left` and `to_left` count for l <= i only, (i, r) of `right`,
// `from_right` and `to_right` for r >= i. Beyond that the factors are 0; the products may be anything, even infinite.
template <typename T>
class Sentence {
 public:
  static int64_t memory(int64_t length) {
    const int64_t side = round_up(length);
    return (MATRICES * side + VECTORS) * side;
  }

  INLINE Sentence(const Batch<T>& batch, int64_t b, T* memory) : batch(batch), b(b) {
    first = 0, n = batch.length;
    if (batch.padding) {
      const bool *row = batch.padding + b * n, *end = row + n;
      first = std::find(row, end, false) - row;
      while (n > first && row[n - 1]) --n;
      n -= first;
    }
    stride = round_up(n);
    for (T** matrix : {&left, &right, &inverse, &to_left, &to_right, &from_left, &from_right, &grad_z, &farthest, &inside})
      *matrix = memory, memory += stride * stride;
    for (T** vector : {&distance, &height, &weight, &grad_distance, &grad_height, &grad_weight, &row})
      *vector = memory, memory += stride;
    std::fill(left, farthest, T(0));
    std::fill(grad_distance, row, T(0));
    factorise();
  }

  // Write the sentence's rows of P_D, (length, length).
  INLINE void write(T* out) {
    out += first * batch.length + first;
    for (int64_t i = 0; i < n; ++i, out += batch.length) {
      share(i);
      for (int64_t j = 0; j < n; ++j) out[j] = row[j] * weight[j];
    }
  }

  // Write the gradients of the batch's arguments for the gradient of P_D, (length, length).
  INLINE void write_gradients(const T* grad, const Gradients<T>& out) {
    grad += first * batch.length + first;
    for (int64_t i = 0; i < n; ++i) through_shares(i, grad + i * batch.length);
    through_normalisers();
    through_left(from_right, to_left);
    through_right(from_left, to_right);
    for (int64_t i = 0; i < n; ++i) through_constituent(i);
    through_maximum();
    through_scales(out);
  }

 private:
  static constexpr int64_t MATRICES = 10, VECTORS = 7;

  static int64_t round_up(int64_t n) { return (n + WIDE - 1) / WIDE * WIDE; }

  INLINE void factorise() {
    const T *distances = batch.distance + b * (batch.length - 1) + first, *heights = batch.height + b * batch.length + first;
    T top = -std::numeric_limits<T>::infinity(), low = -top;
    for (int64_t i = 0; i < n; ++i) {
      row[i] = batch.height_scale * heights[i];
      height[i] = batch.distance_scale * heights[i];
      top = larger(top, row[i]);
      low = std::min(low, row[i]);
    }
    lowest = larger(top - batch.reach, low);
    const T middle = (top + lowest) / 2;
    for (int64_t i = 0; i < n; ++i) weight[i] = exponential(larger(row[i], lowest) - middle);
    for (int64_t k = 0; k + 1 < n; ++k) distance[k] = batch.distance_scale * distances[k];
    range_maximum();
    for (int64_t i = 0; i < n; ++i) constituent(i);
    normalisers();
    through_left(from_right, left);
    through_right(from_left, right);
  }

  // farthest[i, j], the largest distance between tokens i and j: from the row before, or the row after.
  INLINE void range_maximum() {
    for (int64_t i = 0; i < n; ++i) {
      T* now = farthest + i * stride;
      for (int64_t j = 0; j < i; ++j) now[j] = larger(now[j - stride], distance[i - 1]);
      now[i] = -std::numeric_limits<T>::infinity();
    }
    for (int64_t i = n - 2; i >= 0; --i) {
      T* now = farthest + i * stride;
      for (int64_t j = i + 1; j < n; ++j) now[j] = larger(now[j + stride], distance[i]);
    }
  }

  // Row i of inside = p(j in C(i)), left = p_L, right = p_R.
  INLINE void constituent(int64_t i) {
    const T *far = farthest + i * stride, here = height[i];
    T *p = inside + i * stride, *l = left + i * stride, *r = right + i * stride;
    for (int64_t j = 0; j < n; ++j) p[j] = sigmoid(here - far[j]);
    l[0] = p[0];
    for (int64_t j = 1; j <= i; ++j) l[j] = p[j] - p[j - 1];
    for (int64_t j = i; j + 1 < n; ++j) r[j] = p[j] - p[j + 1];
    r[n - 1] = p[n - 1];
  }

  // inverse[l, r] = inverse[r, l] = 1/Z[l, r]; Z is a sum of positive numbers only.
  INLINE void normalisers() {
    for (int64_t l = n - 1; l >= 0; --l) {
      row[l] = 0;
      for (int64_t r = l; r < n; ++r) row[r] += weight[l];
      for (int64_t r = l; r < n; ++r) inverse[l * stride + r] = 1 / row[r];
      for (int64_t r = l; r < n; ++r) inverse[r * stride + l] = inverse[l * stride + r];
    }
  }

  // out[i, r] += the sum of x[i, l] / Z[l, r] over l <= i, for r >= i.
  INLINE void through_left(T* out, const T* x) {
    for (int64_t i = 0; i < n; i += TALL)
      for (int64_t r = i / WIDE * WIDE; r < n; r += WIDE)
        add_product(out + i * stride + r, x + i * stride, stride, 1, inverse + r, stride, std::min(i + TALL, n));
  }

  // out[i, l] += the sum of x[i, r] / Z[l, r] over r >= i, for l <= i.
  INLINE void through_right(T* out, const T* x) {
    for (int64_t i = 0; i < n; i += TALL)
      for (int64_t l = 0; l < std::min(i + TALL, n); l += WIDE)
        add_product(out + i * stride + l, x + i * stride + i, stride, 1, inverse + i * stride + l, stride, n - i);
  }

  // Row i of P_D without its factor weight[j].
  INLINE void share(int64_t i) {
    const T *l = left + i * stride, *r = right + i * stride, *u = from_left + i * stride, *v = from_right + i * stride;
    T sum = 0;
    for (int64_t j = 0; j <= i; ++j) row[j] = sum += l[j] * u[j];
    sum = 0;
    for (int64_t j = n - 1; j > i; --j) row[j] = sum += r[j] * v[j];
  }

  // From here on from_left and from_right turn into the gradients of left and right.
  INLINE void through_shares(int64_t i, const T* grad) {
    share(i);
    for (int64_t j = 0; j < n; ++j) grad_weight[j] += grad[j] * row[j];
    for (int64_t j = 0; j < n; ++j) row[j] = grad[j] * weight[j];
    const int64_t at = i * stride;
    T sum = 0;
    for (int64_t l = i; l >= 0; --l) {
      sum += row[l];
      to_left[at + l] = sum * left[at + l];
      from_left[at + l] *= sum;
    }
    sum = 0;
    from_right[at + i] = 0;
    for (int64_t r = i + 1; r < n; ++r) {
      sum += row[r];
      to_right[at + r] = sum * right[at + r];
      from_right[at + r] *= sum;
    }
  }

  // d(1/Z) = -(1/Z)(1/Z) dZ; the first product is moderate, so the second does not overflow.
  INLINE void through_normalisers() {
    for (int64_t l = 0; l < n; l += TALL)
      for (int64_t r = l / WIDE * WIDE; r < n; r += WIDE) {
        T* out = grad_z + l * stride + r;
        const int64_t at = l * stride, count = std::min(r + WIDE, n) - l;  // of the tokens l <= i <= r
        add_product(out, to_left + at + l, 1, stride, right + at + r, stride, count);
        add_product(out, left + at + l, 1, stride, to_right + at + r, stride, count);
      }
    std::fill(row, row + n, T(0));
    for (int64_t l = 0; l < n; ++l) {
      const T *z = grad_z + l * stride, *inv = inverse + l * stride;
      for (int64_t r = l; r < n; ++r) row[r] += z[r] * inv[r] * inv[r];
      grad_weight[l] -= total(row + l, n - l);  // over the spans that hold token l
    }
  }

  // Row i of inside turns into the gradient of its logit.
  INLINE void through_constituent(int64_t i) {
    const T *l = from_left + i * stride, *r = from_right + i * stride;
    T* p = inside + i * stride;
    for (int64_t j = 0; j < i; ++j) p[j] = (l[j] - l[j + 1]) * (p[j] * (1 - p[j]));
    p[i] = 0;
    for (int64_t j = i + 1; j < n; ++j) p[j] = (r[j] - r[j - 1]) * (p[j] * (1 - p[j]));
    grad_height[i] = total(p, n);
  }

  // Back through `range_maximum`; of equal distances the last one between two tokens gets the gradient.
  INLINE void through_maximum() {
    for (int64_t i = n - 1; i > 0; --i) {
      T* now = inside + i * stride;
      const T *before = farthest + (i - 1) * stride, here = distance[i - 1];
      for (int64_t j = 0; j < i; ++j) {
        row[j] = here >= before[j] ? now[j] : T(0);
        now[j - stride] += now[j] - row[j];
      }
      grad_distance[i - 1] -= total(row, i);
    }
    for (int64_t i = 0; i + 1 < n; ++i) {
      T* now = inside + i * stride;
      const T *after = farthest + (i + 1) * stride, here = distance[i];
      for (int64_t j = i + 1; j < n; ++j) {
        row[j] = here > after[j] ? now[j] : T(0);
        now[j + stride] += now[j] - row[j];
      }
      grad_distance[i] -= total(row + i + 1, n - i - 1);
    }
  }

  INLINE void through_scales(const Gradients<T>& out) {
    const int64_t gap = b * (batch.length - 1) + first, token = b * batch.length + first;
    T distance_scale = 0, height_scale = 0;
    for (int64_t k = 0; k + 1 < n; ++k) {
      out.distance[gap + k] = batch.distance_scale * grad_distance[k];
      distance_scale += grad_distance[k] * batch.distance[gap + k];
    }
    for (int64_t i = 0; i < n; ++i) {
      const T value = batch.height[token + i];
      const T logit = batch.height_scale * value < lowest ? T(0) : grad_weight[i] * weight[i];
      out.height[token + i] = batch.distance_scale * grad_height[i] + batch.height_scale * logit;
      distance_scale += grad_height[i] * value;
      height_scale += logit * value;
    }
    out.distance_scale[b] = distance_scale;
    out.height_scale[b] = height_scale;
  }

  const Batch<T>& batch;
  int64_t b, first, n, stride;
  T lowest;  // a lower scaled height counts as this one
  T *left, *right, *inverse, *to_left, *to_right, *from_left, *from_right, *grad_z, *farthest, *inside;
  T *distance, *height, *weight, *grad_distance, *grad_height, *grad_weight, *row;
};

template <typename T>
INLINE void write_all(const Batch<T>& batch, int64_t begin, int64_t end, T* memory, T* out) {
  for (int64_t b = begin; b < end; ++b) Sentence<T>(batch, b, memory).write(out + b * batch.length * batch.length);
}

template <typename T>
INLINE void write_all(const Batch<T>& batch, int64_t begin, int64_t end, T* memory, const T* grad, const Gradients<T>& out) {
  for (int64_t b = begin; b < end; ++b)
    Sentence<T>(batch, b, memory).write_gradients(grad + b * batch.length * batch.length, out);
}

// Clones are made of plain functions only.
EVERY_PROCESSOR void run(const Batch<float>& batch, int64_t begin, int64_t end, float* memory, float* out) {
  write_all(batch, begin, end, memory, out);
}
EVERY_PROCESSOR void run(const Batch<double>& batch, int64_t begin, int64_t end, double* memory, double* out) {
  write_all(batch, begin, end, memory, out);
}
EVERY_PROCESSOR void run(const Batch<float>& batch, int64_t begin, int64_t end, float* memory, const float* grad, const Gradients<float>& out) {
  write_all(batch, begin, end, memory, grad, out);
}
EVERY_PROCESSOR void run(const Batch<double>& batch, int64_t begin, int64_t end, double* memory, const double* grad, const Gradients<double>& out) {
  write_all(batch, begin, end, memory, grad, out);
}

// Run `work` (begin, end, memory) for all sentences of a batch, on several threads.
template <typename T, typename Work>
void for_sentences(const Batch<T>& batch, int64_t threads, T* memory, const Work& work) {
  const int64_t size = Sentence<T>::memory(batch.length);
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t part = 0; part < threads; ++part)
    work(batch.size * part / threads, batch.size * (part + 1) / threads, memory + part * size);
}

template <typename T>
void forward(const Batch<T>& batch, int64_t threads, T* memory, T* out) {
  for_sentences(batch, threads, memory, [&](int64_t begin, int64_t end, T* own) { run(batch, begin, end, own, out); });
}

template <typename T>
void backward(const Batch<T>& batch, int64_t threads, T* memory, const T* grad, const Gradients<T>& out, T* distance_scale, T* height_scale) {
  for_sentences(batch, threads, memory, [&](int64_t begin, int64_t end, T* own) { run(batch, begin, end, own, grad, out); });
  *distance_scale = total(out.distance_scale, batch.size);
  *height_scale = total(out.height_scale, batch.size);
}

}  // namespace synmask

extern "C" {

// The numbers that a thread needs memory for.
int64_t memory(int64_t length) { return synmask::Sentence<float>::memory(length); }

// `memory` is for all threads; P_D (B, length, length) is 0 at pads before. Gradients of the scales: per sentence, (2, B),
// and their sums.
#define ARGUMENTS(T)                                                                                                 \
  const T *distance, const T *height, const bool *padding, int64_t size, int64_t length, double distance_scale,      \
      double height_scale, double reach, int64_t threads, T *memory
#define BATCH(T) {distance, height, padding, size, length, T(distance_scale), T(height_scale), T(reach)}
#define FOR(T)                                                                                                       \
  void forward_##T(ARGUMENTS(T), T* out) { synmask::forward<T>(BATCH(T), threads, memory, out); }                    \
  void backward_##T(ARGUMENTS(T), const T* grad, T* to_distance, T* to_height, T* to_scales, T* to_distance_scale,   \
                    T* to_height_scale) {                                                                            \
    synmask::backward<T>(BATCH(T), threads, memory, grad, {to_distance, to_height, to_scales, to_scales + size},     \
                         to_distance_scale, to_height_scale);                                                        \
  }
FOR(float)
FOR(double)

extern const char source[];
const char source[] = SOURCE;  // tells from what it was built

}  // extern "C"
