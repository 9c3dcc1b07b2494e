#version 450
// The computation of src/workload.rs. mix.spv is made of it; tests/program/software.rs has the commands.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) writeonly buffer Result { uint words[]; };

uint mix32(uint word) {
    word ^= word >> 16;
    word *= 0x85ebca6bu;
    word ^= word >> 13;
    word *= 0xc2b2ae35u;
    return word ^ (word >> 16);
}

void main() {
    uint index = gl_GlobalInvocationID.x;
    uint word = index + 1u;
    for (uint i = 0u; i < 256u; i++) {
        word = mix32(word);
    }
    words[index] = word;
}
