// Memory for the large tensors of a training on a CPU. `use_blocks` makes PyTorch use it.
//
// Each batch has other sizes, so that malloc's heap becomes full of holes: a quarter of a training's memory. Here, large
// blocks are the system's own. Those that are free are kept for the next batch, but only as long as all blocks together
// take at most 1/16 more than the most that was ever used at once.

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace synmask {

constexpr size_t LEAST = 256 << 10;  // bytes of a large block; malloc has the others
constexpr size_t PAGE = 4096;
constexpr size_t SPARE = 16;  // 1/16 of the blocks may be free at the peak
constexpr size_t WASTE = 8;   // 1/8 of a block may be too much

struct Block {
  void* start;
  size_t size;
};

class Blocks final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* start = size < LEAST ? nullptr : take((size + PAGE - 1) / PAGE * PAGE);
    if (!start) start = small->raw_allocate(size);  // which raises PyTorch's error if there is no memory
    return {start, start, raw_deleter(), c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, size_t size) const override { default_copy_data(to, from, size); }

 private:
  static void release(void* start);

  // A block of at least this size; null if the system has none.
  void* take(size_t size) {
    std::lock_guard lock(mutex);
    auto best = free.end();
    for (auto block = free.begin(); block != free.end(); ++block)
      if (block->size >= size && block->size - size <= size / WASTE && (best == free.end() || block->size < best->size))
        best = block;
    Block block{nullptr, size};
    if (best != free.end()) {
      block = *best;
      kept -= block.size;
      free.erase(best);
    } else {
      const size_t limit = std::max(most, live + size);
      drop_until(limit + limit / SPARE - size);
      block.start = map(size);
      if (!block.start) {
        drop_until(0);
        block.start = map(size);
      }
      if (!block.start) return nullptr;
    }
    live += block.size;
    most = std::max(most, live);
    used[block.start] = block.size;
    return block.start;
  }

  // Gives the system those blocks that are free the longest, until all take at most so many bytes.
  void drop_until(size_t size) {
    auto block = free.begin();
    for (; block != free.end() && live + kept > size; ++block) {
      munmap(block->start, block->size);
      kept -= block->size;
    }
    free.erase(free.begin(), block);
  }

  static void* map(size_t size) {
    void* start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? nullptr : start;
  }

  // Whether it was one of these blocks, which now is free.
  bool put_back(void* start) {
    std::lock_guard lock(mutex);
    const auto found = used.find(start);
    if (found == used.end()) return false;
    free.push_back({start, found->second});
    live -= found->second;
    kept += found->second;
    used.erase(found);
    return true;
  }

  c10::Allocator* small = c10::GetDefaultCPUAllocator();
  std::mutex mutex;
  std::unordered_map<void*, size_t> used;
  std::vector<Block> free;  // the one that is free the longest comes first
  size_t live = 0, kept = 0, most = 0;  // bytes that are used, that are free, and that were used at once
};

Blocks& blocks = *new Blocks;  // never destroyed: tensors may outlive this module

void Blocks::release(void* start) {
  if (start && !blocks.put_back(start)) blocks.small->raw_deallocate(start);
}

}  // namespace synmask

extern "C" {

extern const char source[];
const char source[] = SOURCE;  // tells from what it was built

void use_blocks() { c10::SetCPUAllocator(&synmask::blocks); }

}  // extern "C"
