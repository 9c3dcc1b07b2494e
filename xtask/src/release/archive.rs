//! Archives whose bytes depend only on their files and on one date.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// The files of an archive by their paths, with `/` between folders. The map sorts them.
pub(super) type Files = BTreeMap<String, File>;

/// A file in an archive.
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Kind,
}

/// Whether users run a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Program,
}

impl File {
    pub(super) fn data(bytes: impl Into<Vec<u8>>) -> File {
        File { bytes: bytes.into(), kind: Kind::Data }
    }

    pub(super) fn program(bytes: impl Into<Vec<u8>>) -> File {
        File { bytes: bytes.into(), kind: Kind::Program }
    }

    /// The permissions on Unix.
    fn mode(&self) -> u32 {
        match self.kind {
            Kind::Data => 0o644,
            Kind::Program => 0o755,
        }
    }
}

/// A zip archive. `date` is in seconds since 1970 UTC.
pub(super) fn zip(files: &Files, date: u64) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let date = zip_date(date)?;
    for (path, file) in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(date)
            .unix_permissions(file.mode());
        archive.start_file(path, options).with_context(|| format!("cannot pack {path}"))?;
        archive.write_all(&file.bytes).with_context(|| format!("cannot pack {path}"))?;
    }
    Ok(archive.finish()?.into_inner())
}

/// The time in the format of zip, which begins in 1980 and has steps of two seconds.
fn zip_date(date: u64) -> Result<DateTime> {
    /// 1980-01-01 and 2107-12-31 23:59:58.
    const RANGE: (u64, u64) = (315_532_800, 4_354_819_198);
    let date = date.clamp(RANGE.0, RANGE.1);
    let (days, seconds) = (date / 86_400, date % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    DateTime::from_date_and_time(
        u16::try_from(year)?,
        u8::try_from(month)?,
        u8::try_from(day)?,
        u8::try_from(hour)?,
        u8::try_from(minute)?,
        u8::try_from(second)?,
    )
    .context("invalid date of an archive")
}

/// A compressed tar archive with all files below `folder`. Files with equal bytes are hard
/// links to the first of them.
pub(super) fn tar_gz(folder: &str, files: &Files, date: u64) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    gzip.write_all(&tar(folder, files, date)?)?;
    Ok(gzip.finish()?)
}

/// An uncompressed tar archive; no folder if `folder` is empty.
pub(super) fn tar(folder: &str, files: &Files, date: u64) -> Result<Vec<u8>> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let mut archive = tar::Builder::new(Vec::new());
    let mut earlier: BTreeMap<&Vec<u8>, String> = BTreeMap::new();
    for (path, file) in files {
        let path = format!("{prefix}{path}");
        let mut header = tar::Header::new_ustar();
        header.set_mode(file.mode());
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(date);
        let target = earlier.get(&file.bytes).filter(|_| file.kind == Kind::Program);
        if let Some(target) = target {
            header.set_entry_type(tar::EntryType::Link);
            header.set_size(0);
            archive.append_link(&mut header, &path, target)
        } else {
            header.set_size(file.bytes.len() as u64);
            archive.append_data(&mut header, &path, &file.bytes[..])
        }
        .with_context(|| format!("cannot pack {path}"))?;
        if file.kind == Kind::Program {
            earlier.entry(&file.bytes).or_insert(path);
        }
    }
    Ok(archive.into_inner()?)
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar
/// (<https://howardhinnant.github.io/date_algorithms.html>, `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn files() -> Files {
        Files::from([
            ("b.txt".to_owned(), File::data("text")),
            ("a/program".to_owned(), File::program("code")),
            ("a/second".to_owned(), File::program("code")),
        ])
    }

    #[test]
    fn a_zip_archive_has_its_files_sorted_and_dated() {
        let bytes = zip(&files(), 1_795_299_769).unwrap();
        assert_eq!(bytes, zip(&files(), 1_795_299_769).unwrap());
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let names: Vec<&str> = archive.file_names().collect();
        assert_eq!(names, ["a/program", "a/second", "b.txt"]);
        let mut entry = archive.by_name("a/program").unwrap();
        assert_eq!(entry.unix_mode().unwrap() & 0o777, 0o755);
        // From `date -u -d @1795299769`; zip has steps of two seconds.
        let date = entry.last_modified().unwrap();
        assert_eq!((date.year(), date.month(), date.day()), (2026, 11, 21));
        assert_eq!((date.hour(), date.minute(), date.second()), (22, 22, 48));
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        assert_eq!(text, "code");
    }

    #[test]
    fn dates_that_zip_cannot_express_become_the_nearest_one() {
        assert_eq!(zip_date(0).unwrap().year(), 1980);
        assert_eq!(zip_date(u64::MAX).unwrap().year(), 2107);
    }

    #[test]
    fn a_tar_archive_links_equal_programs() {
        let bytes = tar_gz("name-1.0", &files(), 7).unwrap();
        assert_eq!(bytes, tar_gz("name-1.0", &files(), 7).unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&bytes[..]));
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 7);
            let link = entry.link_name().unwrap().map(|path| path.display().to_string());
            (entry.path().unwrap().display().to_string(), header.mode().unwrap(), link)
        });
        let first = "name-1.0/a/program".to_owned();
        let expected = [
            (first.clone(), 0o755, None),
            ("name-1.0/a/second".to_owned(), 0o755, Some(first)),
            ("name-1.0/b.txt".to_owned(), 0o644, None),
        ];
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }
}
