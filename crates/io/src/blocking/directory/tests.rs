use super::*;
use crate::ByteSink;

const EXTENSIONS: [&str; 1] = ["parquet"];

/// All that is below a directory, hidden or not, with what files hold.
fn tree(path: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        match path.is_dir() {
            true => all.extend(tree(&path).into_iter().map(|below| format!("{name}/{below}"))),
            false => all.push(format!("{name}:{}", fs::read_to_string(&path).unwrap())),
        }
        if path.is_dir() && fs::read_dir(&path).unwrap().next().is_none() {
            all.push(format!("{name}/"));
        }
    }
    all.sort();
    all
}

fn add(new: &mut NewDirectory, place: &str, text: &str) {
    let mut file = new.file(Path::new(place)).unwrap();
    file.append(text.as_bytes()).unwrap();
    new.keep(file, place.into()).unwrap();
}

#[test]
fn all_files_appear_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut new = NewDirectory::create(&path, false, &EXTENSIONS).unwrap();
    add(&mut new, "a=1/x.parquet", "1");
    add(&mut new, "a=1/b=2/y.parquet", "2");
    add(&mut new, "z.parquet", "3");
    assert!(!path.exists());
    new.commit().unwrap();
    assert_eq!(tree(folder.path()), ["out/a=1/b=2/y.parquet:2", "out/a=1/x.parquet:1", "out/z.parquet:3"]);
}

#[test]
fn what_is_dropped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut new = NewDirectory::create(folder.path().join("out"), false, &EXTENSIONS).unwrap();
    new.open_max = 20;
    for number in 0..21 {
        add(&mut new, &format!("n={number}/x.parquet"), "1");
    }
    assert!(new.hidden.is_some(), "they are named before they are too many");
    let unfinished = new.file(Path::new("y.parquet")).unwrap();
    drop((new, unfinished));
    assert_eq!(tree(folder.path()), [""; 0]);
}

/// As a process leaves it that is killed.
#[test]
fn what_is_abandoned_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let make = |name: &str, file: &str| {
        let hidden = folder.path().join(name);
        fs::create_dir_all(hidden.join("a=1")).unwrap();
        fs::write(hidden.join("a=1").join(file), "").unwrap();
        hidden
    };
    make(".out.123-0.part", "x.parquet");
    make(".out.123-1.part", "notes.txt");
    let busy = lock_directory(&make(".out.123-2.part", "x.parquet")).unwrap();
    make(".other.123-0.part", "x.parquet");
    make(".out.old.123-0.part", "x.parquet");
    let mut new = NewDirectory::create(&path, false, &EXTENSIONS).unwrap();
    let kept = [
        ".other.123-0.part/a=1/x.parquet:",
        ".out.123-1.part/a=1/notes.txt:",
        ".out.123-2.part/a=1/x.parquet:",
        ".out.old.123-0.part/a=1/x.parquet:",
    ];
    assert_eq!(tree(folder.path()), kept);
    drop(busy);
    // One at work is none of them, nor when it is done.
    add(&mut new, "x.parquet", "1");
    new.name_all().unwrap();
    drop(NewDirectory::create(&path, false, &EXTENSIONS).unwrap());
    new.commit().unwrap();
    assert_eq!(tree(folder.path()), [&kept[..2], &kept[3..], &["out/x.parquet:1"]].concat());
}

#[test]
fn many_files_wait_without_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut new = NewDirectory::create(&path, false, &EXTENSIONS).unwrap();
    new.open_max = 20;
    for number in 0..45 {
        add(&mut new, &format!("n={number}/x.parquet"), "1");
        let is_seen = fs::read_dir(folder.path()).unwrap().next().is_some();
        assert_eq!(is_seen && cfg!(target_os = "linux"), number >= 19, "{number}");
    }
    new.commit().unwrap();
    assert_eq!(tree(folder.path()).len(), 45);
}

/// They leave less room for complete ones.
#[cfg(target_os = "linux")]
#[test]
fn files_that_are_being_written_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut new = NewDirectory::create(folder.path().join("out"), false, &EXTENSIONS).unwrap();
    new.open_max = 20;
    let mut written: Vec<NewFile> =
        (0..7).map(|number| new.file(Path::new(&format!("{number}.parquet"))).unwrap()).collect();
    for number in 0..6 {
        assert_eq!(new.waiting.len(), number);
        add(&mut new, &format!("n={number}/x.parquet"), "1");
    }
    assert!(new.hidden.is_some() && new.waiting.is_empty());
    // Those that are dropped, or kept, do so no more.
    written.truncate(1);
    new.keep(written.remove(0), "0.parquet".into()).unwrap();
    (0..18).for_each(|number| add(&mut new, &format!("m={number}/x.parquet"), "1"));
    assert_eq!(new.waiting.len(), 19);
    new.commit().unwrap();
    assert_eq!(tree(folder.path()).len(), 25);
}

#[test]
fn files_that_have_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut new = NewDirectory::create(&path, false, &EXTENSIONS).unwrap();
    let place = Path::new("a=1/x.parquet");
    let mut file = new.file_with_name(place, path.join(place), "x").unwrap();
    file.append(b"1").unwrap();
    assert_eq!(fs::read(file.temporary()).unwrap(), b"1");
    new.keep(file, place.into()).unwrap();
    drop(new.file_with_name(Path::new("y.parquet"), path.join("y.parquet"), "y").unwrap());
    new.commit().unwrap();
    assert_eq!(tree(folder.path()), ["out/a=1/x.parquet:1"]);
}

#[test]
fn what_is_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let create = |replaces| NewDirectory::create(&path, replaces, &EXTENSIONS);
    let said = |result: Result<NewDirectory>| result.unwrap_err().message().to_string();
    fs::create_dir(&path).unwrap();
    let mut new = create(false).unwrap();
    add(&mut new, "x.parquet", "1");
    new.commit().unwrap();
    assert_eq!(tree(folder.path()), ["out/x.parquet:1"], "an empty directory is no hindrance");
    assert!(said(create(false)).contains("not empty"));
    // Somebody comes in between.
    let other = folder.path().join("other");
    let mut new = NewDirectory::create(&other, false, &EXTENSIONS).unwrap();
    add(&mut new, "x.parquet", "2");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mine"), "mine").unwrap();
    assert!(new.commit().is_err());
    assert_eq!(tree(folder.path()), ["other/mine:mine", "out/x.parquet:1"]);
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(
        said(NewDirectory::create(folder.path().join("file"), true, &EXTENSIONS)).contains("not a directory")
    );
    assert!(NewDirectory::create(folder.path().join("no/such"), false, &EXTENSIONS).is_err());
}

#[test]
fn only_tables_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::create_dir_all(path.join("a=1")).unwrap();
    fs::write(path.join("a=1/x.PARQUET"), "old").unwrap();
    let mut new = NewDirectory::create(&path, true, &EXTENSIONS).unwrap();
    add(&mut new, "y.parquet", "new");
    new.replace(&EXTENSIONS).unwrap();
    assert_eq!(tree(folder.path()), ["out/y.parquet:new"]);
    fs::create_dir_all(path.join("a=2")).unwrap();
    fs::write(path.join("a=2/notes.txt"), "mine").unwrap();
    let refused = NewDirectory::create(&path, true, &EXTENSIONS).unwrap_err();
    assert!(refused.message().contains("notes.txt, which is not a Parquet file"), "{refused}");
    fs::remove_file(path.join("a=2/notes.txt")).unwrap();
    let mut new = NewDirectory::create(&path, true, &EXTENSIONS).unwrap();
    add(&mut new, "z.parquet", "new");
    fs::create_dir(path.join("b")).unwrap();
    assert!(new.replace(&EXTENSIONS).is_err(), "somebody came in between");
    assert_eq!(tree(folder.path()), ["out/a=2/", "out/b/", "out/y.parquet:new"]);
}

#[test]
fn what_is_put_there_at_the_last_moment_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("x.parquet"), "old").unwrap();
    let mut new = NewDirectory::create(&path, true, &EXTENSIONS).unwrap();
    add(&mut new, "y.parquet", "new");
    // Behind the last look, and before the two change places.
    fs::write(path.join("notes.txt"), "mine").unwrap();
    let error = new.take_place(&EXTENSIONS).unwrap_err();
    assert!(error.to_string().contains("notes.txt"), "{error}");
    drop(new);
    assert_eq!(tree(folder.path()), ["out/notes.txt:mine", "out/x.parquet:old"]);
}

/// The old directory has a hidden name without a lock for a moment.
#[test]
fn what_another_process_removes_is_not_missed() {
    let folder = tempfile::tempdir().unwrap();
    let replaced = folder.path().join(".out.1-0.part");
    fs::create_dir_all(replaced.join("a=1")).unwrap();
    fs::write(replaced.join("a=1/x.parquet"), "old").unwrap();
    assert_eq!(left_over(&replaced, &EXTENSIONS).unwrap(), None);
    fs::write(replaced.join("a=1/notes.txt"), "mine").unwrap();
    assert!(left_over(&replaced, &EXTENSIONS).unwrap().unwrap().ends_with("notes.txt"));
    fs::remove_dir_all(&replaced).unwrap();
    assert_eq!(left_over(&replaced, &EXTENSIONS).unwrap(), None);
}

#[cfg(unix)]
#[test]
fn what_replaces_a_directory_has_its_mode() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let set = |below: &str, mode| {
        fs::set_permissions(path.join(below), fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = |below: &str| fs::metadata(path.join(below)).unwrap().mode() & 0o7777;
    // An empty one.
    fs::create_dir(&path).unwrap();
    set("", 0o700);
    let mut new = NewDirectory::create(&path, false, &EXTENSIONS).unwrap();
    add(&mut new, "a=1/x.parquet", "1");
    add(&mut new, "a=1/y.parquet", "1");
    new.commit().unwrap();
    assert_eq!(mode(""), 0o700);
    // One with files.
    set("", 0o750);
    set("a=1", 0o711);
    set("a=1/x.parquet", 0o600);
    set("a=1/y.parquet", 0o600);
    let mut new = NewDirectory::create(&path, true, &EXTENSIONS).unwrap();
    add(&mut new, "a=1/x.parquet", "2");
    add(&mut new, "a=2/x.parquet", "2");
    new.name_all().unwrap();
    assert_eq!(fs::metadata(&new.hidden.as_ref().unwrap().path).unwrap().mode() & 0o7777, 0o700);
    new.replace(&EXTENSIONS).unwrap();
    let modes = ["", "a=1", "a=1/x.parquet", "a=2/x.parquet"].map(mode);
    assert_eq!(modes, [0o750, 0o711, 0o600, 0o600]);
}

#[cfg(unix)]
#[test]
fn links_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["empty", "nothing"] {
        let link = folder.path().join(format!("to-{name}"));
        std::os::unix::fs::symlink(name, &link).unwrap();
        if name == "empty" {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mut new = NewDirectory::create(link.join(""), false, &EXTENSIONS).unwrap();
        add(&mut new, "x.parquet", "1");
        new.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(tree(&folder.path().join(name)), ["x.parquet:1"]);
    }
}

/// `/proc` is one on every Linux; what is mounted there has entries, which are refused first.
#[cfg(target_os = "linux")]
#[test]
fn mount_points_are_known() {
    let folder = tempfile::tempdir().unwrap();
    assert!(is_mount_point(Path::new("/proc")));
    assert!(!is_mount_point(folder.path()));
}

#[test]
fn who_comes_second_is_refused_as_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let create = |replaces| {
        let mut new = NewDirectory::create(&path, replaces, &EXTENSIONS).unwrap();
        add(&mut new, "x.parquet", if replaces { "replaced" } else { "1" });
        new
    };
    let (first, second, third) = (create(false), create(false), create(true));
    first.commit().unwrap();
    let error = second.commit().unwrap_err();
    assert_eq!((error.message(), error.detail()), (NOT_EMPTY, Some(Detail::AlreadyExists)));
    third.replace(&EXTENSIONS).unwrap();
    assert_eq!(tree(folder.path()), ["out/x.parquet:replaced"]);
}

#[test]
fn two_change_places_in_steps_too() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    fs::create_dir(&a).unwrap();
    fs::create_dir(&b).unwrap();
    fs::write(a.join("x"), "1").unwrap();
    exchange_in_steps(&a, &b).unwrap();
    assert_eq!(tree(folder.path()), ["a/", "b/x:1"]);
    exchange(&a, &b).unwrap();
    assert_eq!(tree(folder.path()), ["a/x:1", "b/"]);
}
