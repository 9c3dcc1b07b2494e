module directx-device-plugin/bindings/go

go 1.21
