module example.com/directx-device-plugin/bindings/go

go 1.21
