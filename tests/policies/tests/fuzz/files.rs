//! Files of the cache.

use std::fs;

use ocm_policy_engine::{Cache, Ceiling, Compiler};

use crate::guests::Guest;
use crate::support::Random;
use crate::{fuzz, mutate};

#[test]
fn damaged_files_of_the_cache_are_never_run() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("cache");
    let ceiling = Ceiling::default();
    let never = Compiler::process("/nowhere/compiler", []);
    let one = Guest::default().module();
    let other = Guest::answering(r#"{"verdict":"deny","reasons":[{"code":"No","message":"no"}]}"#).module();
    let cache = Cache::open(&path).expect("it can be opened");
    let file_of = |module: &[u8]| {
        let before: Vec<_> = files(&path);
        cache.artifact(&Compiler::Here, module, "{}", &ceiling).expect("it can be compiled");
        files(&path).into_iter().find(|file| !before.contains(file)).expect("it is kept")
    };
    let file = file_of(&one);
    let foreign = fs::read(file_of(&other)).expect("it is there");
    let right = fs::read(&file).expect("it is there");
    let accepts = || cache.artifact(&never, &one, "{}", &ceiling).is_ok();
    assert!(accepts(), "an undamaged file is taken");
    let make = |random: &mut Random| {
        let mut damaged = right.clone();
        match random.below(12) {
            0 => damaged.clone_from(&foreign),
            // The code of one file before the content of the other.
            1 => drop(damaged.splice(32.., foreign[32..].iter().copied())),
            2 => drop(damaged.splice(..32, foreign[..32].iter().copied())),
            3 => drop(damaged.splice(..32, [0; 32])),
            // Within the code, and within what tells what it is of.
            4 => damaged[random.below(32)] ^= 1 << random.below(8),
            5 => damaged[32 + random.below(400)] ^= 1 << random.below(8),
            _ => mutate::bytes(&mut damaged, &foreign, random),
        }
        damaged
    };
    fuzz("cache", 400, make, |_, damaged| {
        fs::write(&file, damaged).expect("it can be written");
        assert_eq!(accepts(), damaged == right, "a file that is not what was kept is run");
    });
    fs::write(&file, &right).expect("it can be written");
    assert!(accepts(), "the undamaged file is taken again");
    // With another key, the right file is a forgery.
    let mut key = fs::read(path.join("key")).expect("there is a key");
    key[0] ^= 1;
    fs::write(path.join("key"), key).expect("it can be written");
    let cache = Cache::open(&path).expect("it can be opened");
    assert!(cache.artifact(&never, &one, "{}", &ceiling).is_err());
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("there is a folder").filter_map(Result::ok).map(|entry| entry.path());
    entries.filter(|file| file.extension().is_some_and(|extension| extension == "policy")).collect()
}
