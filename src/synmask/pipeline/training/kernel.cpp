// Memory for the large tensors of a training on a CPU. `use_blocks` makes PyTorch use it.
//
// Each batch has other sizes, so that malloc's heap becomes full of holes: a quarter of a training's memory. Here, large
// blocks are the system's own pages. Those that are free are kept for the next batch, cut and stretched to its sizes, but
// only as long as all blocks together take at most 1/16 more than the most that was ever used at once. New pages are dear:
// the system clears each of them, at its first use.

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace synmask {

constexpr size_t LEAST = 256 << 10;  // bytes of a large block; malloc has the others
const size_t PAGE = sysconf(_SC_PAGESIZE);
constexpr size_t SPARE = 16;  // 1/16 of the blocks may be free at the peak

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

  // A block of this size, of a free block's pages; null if the system has no more.
  void* take(size_t size) {
    std::lock_guard lock(mutex);
    auto best = free.end();
    for (auto block = free.begin(); block != free.end(); ++block)
      if (best == free.end() || is_better(block->size, best->size, size)) best = block;
    Block block{nullptr, 0};
    if (best != free.end()) {
      block = *best;
      kept -= block.size;
      free.erase(best);
    }
    if (block.size < size) {
      const size_t limit = std::max(most, live + size);
      drop_until(limit + limit / SPARE / PAGE * PAGE - size);
      void* start = stretch(block, size);
      if (!start) {
        drop_until(0);
        start = stretch(block, size);
      }
      if (!start) {
        put(block);
        return nullptr;
      }
      block = {start, size};
    } else if (block.size - size >= LEAST) {
      put({static_cast<char*>(block.start) + size, block.size - size});
      block.size = size;
    }
    live += block.size;
    most = std::max(most, live);
    used[block.start] = block.size;
    return block.start;
  }

  // The smaller of two that are large enough, or else the larger one.
  static bool is_better(size_t one, size_t other, size_t least) {
    return other < least ? one > other : one >= least && one < other;
  }

  void put(Block block) {
    if (block.size) free.push_back(block);
    kept += block.size;
  }

  // Gives the system pages of those blocks that are free the longest, until all blocks take at most so many bytes.
  void drop_until(size_t size) {
    auto block = free.begin();
    while (block != free.end() && live + kept > size) {
      const size_t dropped = std::min(block->size, live + kept - size);
      block->size -= dropped;
      munmap(static_cast<char*>(block->start) + block->size, dropped);
      kept -= dropped;
      if (!block->size) ++block;
    }
    free.erase(free.begin(), block);
  }

  // This block with pages added, or a new one; null if the system has no more.
  static void* stretch(const Block& block, size_t size) {
    void* start = block.start ? mremap(block.start, block.size, size, MREMAP_MAYMOVE)
                              : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? nullptr : start;
  }

  // Whether it was one of these blocks, which now is free.
  bool put_back(void* start) {
    std::lock_guard lock(mutex);
    const auto found = used.find(start);
    if (found == used.end()) return false;
    live -= found->second;
    put({start, found->second});
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
