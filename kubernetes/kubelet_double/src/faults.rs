//! What can go wrong with a kubelet, on request.

use std::time::Duration;

/// What a kubelet does wrong from now on. The default is nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// When a plugin registers.
    pub register: RegisterFault,
    /// When it should ask for the list.
    pub stream: StreamFault,
}

/// What goes wrong when a plugin registers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RegisterFault {
    /// Nothing.
    #[default]
    None,
    /// It refuses, with these words.
    Refuse(String),
    /// It never answers, and does nothing.
    Hang,
    /// It does everything, and answers this much later.
    AnswerLate(Duration),
    /// It does everything this much later, and answers then.
    ActLate(Duration),
    /// It connects to the plugin, and answers with an error all the same.
    RefuseAfterDial(String),
}

/// What goes wrong with the stream of a registered plugin.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum StreamFault {
    /// Nothing.
    #[default]
    None,
    /// It never asks for the list.
    NeverAsk,
    /// It asks this much later.
    AskLate(Duration),
    /// It asks and does not read for as long as this fault is set.
    NeverRead,
    /// It drops the connection after this time.
    DropAfter(Duration),
}
