module github.com/directx-device-plugin/directx-device-plugin/bindings/go

go 1.21
