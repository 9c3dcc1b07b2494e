//! What the daemon logs about its configuration.

use config::{Config, ModelSummary, SettingText};

/// Logs the file and the variables of each driver model, every value, defaults at a lower level,
/// and what has no effect.
pub fn log(config: &Config) {
    if let Some(directory) = &config.device_plugin_dir {
        let directory = directory.display();
        tracing::info!(key = "device-plugin-dir", value = %directory, "configuration");
    }
    for ModelSummary { model, file, variables, settings } in &config.models {
        let model: &str = model.into();
        let file = file.as_deref().unwrap_or("none");
        let variables = Some(variables.join(", ")).filter(|names| !names.is_empty());
        tracing::info!(model, file, variables, "configuration");
        for SettingText { key, value, is_default } in settings {
            if *is_default {
                tracing::debug!(model, key, value, "configuration");
            } else {
                tracing::info!(model, key, value, "configuration");
            }
        }
    }
    for notice in &config.notices {
        log_notice(notice);
    }
}

/// Logs the values and notices that `before` does not have.
pub(crate) fn log_changes(before: &Config, after: &Config) {
    for ModelSummary { model, file, settings, .. } in &after.models {
        let before = before.models.iter().find(|before| before.model == *model);
        let before: &[SettingText] = before.map_or(&[], |before| &before.settings);
        for setting in settings.iter().filter(|setting| !before.contains(setting)) {
            let SettingText { key, value, .. } = setting;
            let model: &str = model.into();
            tracing::info!(model, key, value, file, "configuration changed");
        }
    }
    for notice in after.notices.iter().filter(|notice| !before.notices.contains(notice)) {
        log_notice(notice);
    }
}

/// Logs a part of the configuration that has no effect.
pub fn log_notice(notice: &str) {
    tracing::warn!(%notice, "part of the configuration has no effect");
}

#[cfg(test)]
mod tests {
    use command_line::configuration::load;
    use config::Flags;
    use devices::DriverModel;
    use process::logging::test_log::Log;

    use super::*;

    #[test]
    fn what_is_set_is_logged_and_then_what_is_new_for_a_driver_model() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        let config = |text: &str, notices: &[&str]| {
            std::fs::write(&file, text).unwrap();
            let driver_models = vec![DriverModel::Wddm, DriverModel::Mcdm];
            let flags = Flags { driver_models, config: Some(file.clone()), ..Flags::default() };
            let mut config = load(&flags).unwrap();
            config.notices = notices.iter().map(|notice| (*notice).to_owned()).collect();
            config
        };
        let before = config("", &["known"]);
        let after = config("multitenancy: 2", &["known", "unknown until now"]);
        let log = Log::start();
        log_changes(&before, &after);
        let text = log.text();
        assert_eq!(text.matches("configuration changed").count(), 2, "{text}");
        for model in ["wddm", "mcdm"] {
            let line = format!("model=\"{model}\" key=\"multitenancy\" value=\"2\"");
            assert!(text.contains(&line), "{text}");
        }
        assert_eq!(text.matches("has no effect").count(), 1, "{text}");
        assert!(text.contains("unknown until now"), "{text}");
        super::log(&after);
        let all = log.text();
        let later = all.strip_prefix(&text).unwrap();
        let set = later.lines().filter(|line| line.contains("INFO") && line.contains(" value="));
        assert_eq!((set.count(), later.matches("has no effect").count()), (2, 2), "{later}");
    }
}
