//! A text for administrators that may contain the words of another program.

use std::fmt;

/// A text for administrators. It has no `PartialEq`: the words of other programs change although
/// nothing has happened, for example with the name of a socket in them. Compare [`Message::own`].
#[derive(Clone, Debug, Default)]
pub struct Message {
    own: String,
    shown: String,
}

impl Message {
    /// The text `own`, followed by a colon and the words of another program.
    #[must_use]
    pub fn quoting(own: String, words: &str) -> Message {
        Message { shown: format!("{own}: {words}"), own }
    }

    /// What this program says, without the words of others.
    #[must_use]
    pub fn own(&self) -> &str {
        &self.own
    }

    /// The message with this text before it.
    #[must_use]
    pub fn after(&self, text: &str) -> Message {
        let before = |rest: &str| format!("{text}{rest}");
        Message { own: before(&self.own), shown: before(&self.shown) }
    }

    /// These messages, joined by semicolons.
    pub(super) fn joined(messages: &[Message]) -> Message {
        let join = |text: fn(&Message) -> &str| -> String {
            messages.iter().map(text).collect::<Vec<_>>().join("; ")
        };
        Message { own: join(|message| &message.own), shown: join(|message| &message.shown) }
    }
}

impl From<String> for Message {
    fn from(own: String) -> Message {
        Message { shown: own.clone(), own }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
