// The computation of src/workload.rs. The driver compiles it.
uint mix32(uint word) {
    word ^= word >> 16;
    word *= 0x85ebca6bu;
    word ^= word >> 13;
    word *= 0xc2b2ae35u;
    return word ^ (word >> 16);
}

kernel void mix_words(global uint *words) {
    size_t index = get_global_id(0);
    uint word = (uint)index + 1u;
    for (uint i = 0u; i < 256u; i++) {
        word = mix32(word);
    }
    words[index] = word;
}
