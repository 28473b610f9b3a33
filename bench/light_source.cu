// The operator `light` as source text, with the answers of include/headrace/operators/light.hpp bit by bit.
// light_from_source.py compiles it to measure the cost of an operator that is compiled on use.

constexpr uint32_t kLaneCount = 128;
constexpr uint32_t kSteps = 64;
constexpr float kScale = 1.0F - 0x1p-12F;

uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void light(Group group, const Query& query, Answer& answer) {
  constexpr uint32_t kWidth = Group::kLanes;
  uint64_t checksum = 0;
  for (uint32_t i = group.rank(); i < 256; i += group.size()) checksum += query[i];
  for (uint32_t base = group.rank() * kWidth; base < kLaneCount; base += group.size() * kWidth) {
    float a[kWidth];
    float b[kWidth];
    for (uint32_t i = 0; i < kWidth; ++i) {
      const uint32_t lane = base + i;
      a[i] = static_cast<float>((query[lane] ^ (lane * 0x9E3779B9U)) >> 8) * 0x1p-24F;
      b[i] = 1.0F - a[i];
    }
    for (uint32_t step = 0; step < kSteps; ++step) {
      for (uint32_t i = 0; i < kWidth; ++i) {
        a[i] = fmaf(a[i], kScale, 0x1p-13F);
        b[i] = fmaf(b[i], -kScale, 0.875F);
      }
    }
    for (uint32_t i = 0; i < kWidth; ++i) checksum += uint64_t{31} * bits_of(a[i]) + bits_of(b[i]);
  }
  checksum = group.sum(checksum);
  for (uint32_t i = group.rank(); i < 8; i += group.size()) answer[i] = (checksum + i) * 0x9E3779B97F4A7C15ULL;
}
