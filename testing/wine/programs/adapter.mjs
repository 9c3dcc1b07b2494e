// For Deno: exits with 0 if WebGPU finds a GPU, and with 9 if it finds none.
Deno.exit(await navigator.gpu.requestAdapter() ? 0 : 9);
