//! What to write for a number that a file spells with a word or a unit.

use host::Vendor;

use crate::ReadError;

/// Numbers of an inventory, each with an example of what to write.
const EXAMPLES: [(&str, &str); 11] = [
    ("luid", "7048070"),
    ("vendor", "0x10DE"),
    ("device", "0x1EB8"),
    ("subsystem", "0x12A210DE"),
    ("revision", "0xA1"),
    ("dedicatedMemoryMiB", "15360"),
    ("usedMemoryMiB", "6144"),
    ("utilizationPercent", "40"),
    ("numaNode", "0"),
    ("problemCode", "43"),
    ("index", "0"),
];

/// Those that an inventory must have where they belong.
const REQUIRED: [&str; 4] = ["luid", "vendor", "device", "index"];

/// What to write instead, if the error is about text in place of a number.
pub(crate) fn hint(error: &ReadError) -> Option<String> {
    let (expected, found) = error.what.split_once(", found ")?;
    if !expected.contains("number") {
        return None;
    }
    let quotes = ['`', '"'];
    let found = found.strip_prefix(quotes)?.strip_suffix(quotes)?.trim_matches(['"', '\'']).trim();
    // A number that is too large, too small or not whole.
    if found.parse::<f64>().is_ok() || found.starts_with("0x") {
        return None;
    }
    let key = error.path.rsplit('.').next()?;
    if key.eq_ignore_ascii_case("vendor")
        && let Some(vendor) = named_vendor(found)
    {
        return Some(format!("write 0x{:04X} for {vendor}", vendor.pci_id()));
    }
    // The digits of `10DE` and `VEN_10DE`.
    let digits = found.rsplit('_').next().unwrap_or(found);
    let is_hexadecimal = EXAMPLES.iter().any(|(name, example)| {
        name.eq_ignore_ascii_case(key) && (example.starts_with("0x") || *name == "luid")
    });
    if is_hexadecimal && u32::from_str_radix(digits, 16).is_ok() {
        return Some(format!("write 0x{digits} for a hexadecimal number"));
    }
    if let Some(number) = converted(key, found) {
        return Some(format!("write {number} for {found}"));
    }
    let example = EXAMPLES.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
    let such_as = example.map(|(_, example)| format!(", such as {example}")).unwrap_or_default();
    let is_required = REQUIRED.iter().any(|name| name.eq_ignore_ascii_case(key));
    let otherwise = if is_required { "" } else { ", or leave the key out" };
    Some(format!("write a number{such_as}{otherwise}"))
}

/// The vendor that a text names as people do, such as `NVIDIA Corporation`.
fn named_vendor(text: &str) -> Option<Vendor> {
    let text = text.to_lowercase();
    let is_named = |vendor: &Vendor| text.contains(&vendor.to_string());
    let by_name = Vendor::NAMED.into_iter().find(is_named);
    by_name.or_else(|| text.starts_with("advanced micro devices").then_some(Vendor::Amd))
}

/// The number in the unit of the key, or the only number in the text.
fn converted(key: &str, text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = text[end..].trim().to_lowercase();
    let key = key.to_lowercase();
    let factor = match unit.as_str() {
        "m" | "mi" | "mb" | "mib" if key.ends_with("mib") => 1.0,
        "g" | "gi" | "gb" | "gib" if key.ends_with("mib") => 1024.0,
        "t" | "ti" | "tb" | "tib" if key.ends_with("mib") => 1024.0 * 1024.0,
        "s" | "sec" | "second" | "seconds" if key.ends_with("seconds") => 1.0,
        "m" | "min" | "minute" | "minutes" if key.ends_with("seconds") => 60.0,
        "h" | "hour" | "hours" if key.ends_with("seconds") => 3600.0,
        // A unit of something else.
        _ if key.ends_with("mib") || key.ends_with("seconds") => return None,
        _ => return only_number(text),
    };
    let number = text[..end].parse::<f64>().ok()? * factor;
    // A float has every whole number up to 2^53.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
    (number.fract() == 0.0 && number < 9e15).then_some(number as u64)
}

/// The number in a text such as `Code 43`, `40%`, `4x` or `4 pods`, but not in `Tesla T4`.
fn only_number(text: &str) -> Option<u64> {
    let mut numbers = text.split_whitespace().filter_map(|word| {
        word.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().ok()
    });
    let number = numbers.next()?;
    numbers.next().is_none().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(key: &str, found: &str) -> Option<String> {
        let path = format!("adapters[0].x.{key}");
        let what = format!("expected a whole number from 0 to 4294967295, found `{found}`");
        hint(&ReadError { path, ..ReadError::of_file("f", what) })
    }

    #[test]
    fn a_word_for_a_number_has_the_number_in_its_hint() {
        for (key, found, expected) in [
            ("vendor", "AMD", "write 0x1002 for amd"),
            ("vendor", "NVIDIA Corporation", "write 0x10DE for nvidia"),
            ("vendor", "Advanced Micro Devices, Inc.", "write 0x1002 for amd"),
            ("vendor", "VEN_8086", "write 0x8086 for a hexadecimal number"),
            ("device", "1EB8", "write 0x1EB8 for a hexadecimal number"),
            ("device", "Tesla T4", "write a number, such as 0x1EB8"),
            ("device", "Radeon", "write a number, such as 0x1EB8"),
            ("revision", "a1", "write 0xa1 for a hexadecimal number"),
            ("dedicatedMemoryMiB", "16 GB", "write 16384 for 16 GB"),
            ("minMemoryMiB", "1.5GiB", "write 1536 for 1.5GiB"),
            ("usedMemoryMiB", "6144 MB", "write 6144 for 6144 MB"),
            ("usedMemoryMiB", "2TB", "write 2097152 for 2TB"),
            ("minMemoryMiB", "1.0001 GB", "write a number, or leave the key out"),
            ("minMemoryMiB", "10000000000000 GB", "write a number, or leave the key out"),
            ("minMemoryMiB", "2 h", "write a number, or leave the key out"),
            ("dedicatedMemoryMiB", "lots", "write a number, such as 15360, or leave the key out"),
            ("removalGraceSeconds", "1m", "write 60 for 1m"),
            ("removalGraceSeconds", "90 seconds", "write 90 for 90 seconds"),
            ("removalGraceSeconds", "2 hours", "write 7200 for 2 hours"),
            ("removalGraceSeconds", "1 GB", "write a number, or leave the key out"),
            ("problemCode", "Code 43", "write 43 for Code 43"),
            ("problemCode", "none", "write a number, such as 43, or leave the key out"),
            ("problemCode", "A1", "write a number, such as 43, or leave the key out"),
            ("utilizationPercent", "40%", "write 40 for 40%"),
            ("multitenancy", "4x", "write 4 for 4x"),
            ("multitenancy", "4 of 8", "write a number, or leave the key out"),
            ("multitenancy", "unlimited", "write a number, or leave the key out"),
        ] {
            assert_eq!(advice(key, found).as_deref(), Some(expected), "{key}: {found}");
        }
        for found in ["-1", "1.5", "4294967296", "0x100000000"] {
            assert_eq!(advice("problemCode", found), None, "{found}");
        }
    }
}
