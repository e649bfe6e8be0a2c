//! Any text is a version and a constraint or refused; what is read prints as something that reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_semver::{Constraints, Version};

fuzz_target!(|input: (&str, &str)| {
    let version = Version::parse(input.0);
    if let Ok(version) = &version {
        let again = Version::parse(&version.to_string());
        assert_eq!(again.as_ref(), Ok(version));
    }
    if let (Ok(constraints), Ok(version)) = (Constraints::parse(input.1), &version) {
        assert_eq!(constraints.check(version), constraints.validate(version).is_ok());
    }
});
