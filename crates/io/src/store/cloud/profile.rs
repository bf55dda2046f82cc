//! The profiles of AWS's own tools: `~/.aws/credentials` and `~/.aws/config`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

/// The settings of a profile, by their names in the files: `aws_access_key_id`, `region`.
pub(super) type Profile = BTreeMap<String, String>;

/// The profile that `AWS_PROFILE` names, or the one called `default`. Empty if there are no such files.
pub(super) fn profile() -> Profile {
    let name = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "default".to_owned());
    let read = |variable: &str, file: &str| {
        let path = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        let path = path.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".aws").join(file)))?;
        fs::read_to_string(path).ok()
    };
    let mut profile = Profile::new();
    // What both have is the credentials' own.
    for (text, section) in [
        (read("AWS_CONFIG_FILE", "config"), format!("profile {name}")),
        (read("AWS_CONFIG_FILE", "config"), name.clone()),
        (read("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name),
    ] {
        profile.extend(settings(&text.unwrap_or_default(), &section));
    }
    profile
}

/// The settings of a section.
fn settings(text: &str, section: &str) -> Profile {
    let mut is_within = false;
    let mut found = Profile::new();
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            is_within = name.trim() == section;
        } else if is_within
            // Lines that are indented belong to the setting before them.
            && !line.starts_with([' ', '\t', '#', ';'])
            && let Some((name, value)) = line.split_once('=')
        {
            found.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_kept_apart() {
        let text = "# mine\n[default]\naws_access_key_id = A\nregion=eu-west-1\n\n[ work ]\nAWS_ACCESS_KEY_ID=B\n\
            s3 =\n  region = nested\n";
        assert_eq!(settings(text, "default")["region"], "eu-west-1");
        let work = settings(text, "work");
        assert_eq!((&*work["aws_access_key_id"], work.get("region")), ("B", None));
        assert!(settings(text, "none").is_empty());
    }
}
