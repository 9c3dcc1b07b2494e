//! Why a process is not filtered.

/// Why a process is not filtered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotFiltered {
    OtherArchitecture,
    No32BitFilter,
    StartedBy32Bit,
    Managed,
    SignedOnly,
    StrictGuard,
    StrictShadowStack,
    UnusualProgram,
    AppContainer,
    FilterUnreadable,
    /// With this NTSTATUS.
    Refused(i32),
}

impl NotFiltered {
    /// The reason as text, and the NTSTATUS if there is one.
    #[must_use]
    pub fn reason(self) -> (&'static str, Option<i32>) {
        let text = match self {
            NotFiltered::OtherArchitecture => "it is not a program for x86-64 or x86",
            NotFiltered::No32BitFilter => "it is a 32-bit program, and their filter is missing",
            NotFiltered::StartedBy32Bit => "a 32-bit program starts a 64-bit one",
            NotFiltered::Managed => "it is a program of .NET Framework",
            NotFiltered::SignedOnly => "it loads only libraries signed by Microsoft",
            NotFiltered::StrictGuard => "it loads only libraries with Control Flow Guard",
            NotFiltered::StrictShadowStack => "it loads only libraries with CET",
            NotFiltered::UnusualProgram => "its import table cannot be read",
            NotFiltered::AppContainer => {
                "the access list of the filter's file does not admit its AppContainer"
            }
            NotFiltered::FilterUnreadable => "the filter's file cannot be read",
            NotFiltered::Refused(status) => return ("Windows refused access to it", Some(status)),
        };
        (text, None)
    }
}

impl From<i32> for NotFiltered {
    fn from(status: i32) -> NotFiltered {
        NotFiltered::Refused(status)
    }
}
