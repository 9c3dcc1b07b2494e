// The computation of src/workload.rs for Direct3D 11 and 12. mix.dxbc is made of it.
RWByteAddressBuffer result : register(u0);

uint mix32(uint word)
{
    word ^= word >> 16;
    word *= 0x85ebca6bu;
    word ^= word >> 13;
    word *= 0xc2b2ae35u;
    return word ^ (word >> 16);
}

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID)
{
    uint word = id.x + 1u;
    [loop]
    for (uint i = 0u; i < 256u; i++)
    {
        word = mix32(word);
    }
    result.Store(id.x * 4u, word);
}
