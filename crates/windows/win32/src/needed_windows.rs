/// Which Windows versions a live host needs, and why, for error messages and `doctor`.
pub const NEEDED_WINDOWS: &str = "Windows Server 2019, Windows 10 version 1809 or newer is needed; \
     Nano Server cannot list DirectX adapters";
