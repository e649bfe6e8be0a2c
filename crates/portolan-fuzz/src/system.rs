//! Files of a server that modules edit: whatever is in them, an edit is stable and keeps other lines. And what modules take
//! from other nodes.

use camino::Utf8Component;
use portolan_modules::formats::{
    KeyLine, MountLine, PublicKeys, SysctlKey, fault_of_schedule, line_of, mounted_type,
    parse_installed, parse_transaction, value_of, with_keys, with_line, with_value,
};
use portolan_modules::{MAX_SHARE_FILES, SharedContent};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "authorized-keys",
        about: "an `authorized_keys`",
        run: |bytes| std::str::from_utf8(bytes).is_ok_and(keys),
        seeds: || {
            texts(&[
                "# mine\nfrom=\"10.0.0.0/8, ::1\",command=\"echo \\\"hi\\\"\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIanna anna\n",
                "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABbert\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABbert b\n\"",
            ])
        },
    },
    Target {
        name: "fstab",
        about: "an `/etc/fstab` or a list of mounts",
        run: |bytes| std::str::from_utf8(bytes).is_ok_and(fstab),
        seeds: || {
            texts(&[
                "# disks\nUUID=1 / ext4 defaults 0 1\n/dev/sdb1 /srv/my\\040data ext4 ro\n",
                "22 21 0:5 / /srv rw shared:1 - tmpfs none rw\n\\ \\777 /srv \\04",
            ])
        },
    },
    Target {
        name: "openpgp-key",
        about: "the key of a repository",
        run: |bytes| {
            let Ok(keys) = PublicKeys::parse(bytes) else {
                return false;
            };
            let again = PublicKeys::parse(keys.armored().as_bytes());
            assert_eq!(again.as_ref(), Ok(&keys));
            true
        },
        seeds: || {
            texts(&[
                "-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: x\n\n\
                 mDMEav1TvhYJKwYBBAHaRw8BAQdAFAuPd3EEws2Dbblpb5tAEwwm8gVfsK6rkzrw\n\
                 Qyo0Sym0EVQgPHRAZXhhbXBsZS5vcmc+iJAEExYIADgWIQSQ30mQF3p1/e6Xa7Tg\n\
                 BYqwen+LMgUCav1TvgIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAKCRDgBYqw\n\
                 en+LMnLJAQDMvLkhgA/xBaY6zgOE+OcQRBIDhb8zeAT28oHTr30TiAEA8ZttKkG5\n\
                 LIhK5xfAUJu3F2sSWB4o+hGZLQyqgLHVGgE=\n=I4xM\n\
                 -----END PGP PUBLIC KEY BLOCK-----\n",
                "\u{7f}not a key",
            ])
        },
    },
    Target {
        name: "share-files",
        about: "what another node gives: one content, or several files",
        run: |bytes| {
            let Ok(SharedContent::Files(files)) = SharedContent::read(bytes.to_vec()) else {
                return false;
            };
            assert!(files.count() <= MAX_SHARE_FILES && files.bytes() <= bytes.len());
            for (path, file) in files.iter() {
                let mut parts = path.components();
                assert!(parts.all(|part| matches!(part, Utf8Component::Normal(_))));
                assert!(file.mode <= 0o777);
            }
            let again = files.to_content().and_then(SharedContent::read);
            assert_eq!(again, Ok(SharedContent::Files(files)));
            true
        },
        seeds: || {
            texts(&[
                "portolan share files 1\n[{\"path\":\"tls/key.pem\",\"mode\":384,\"bytes\":3},\
                 {\"path\":\"cert.pem\",\"mode\":420,\"bytes\":0}]\nkey",
                "portolan share files 1\n[{\"path\":\"../../etc/passwd\",\"mode\":2541,\"bytes\":1}]\nx",
                "portolan share files 1\n[{\"path\":\"a\",\"mode\":1,\"bytes\":18446744073709551615}]\n",
                "a token",
            ])
        },
    },
    Target {
        name: "dnf-transaction",
        about: "what dnf would do, and what rpm has installed",
        run: |bytes| {
            let text = String::from_utf8_lossy(bytes);
            !parse_transaction(&text).is_empty() || !parse_installed(&text).is_empty()
        },
        seeds: || {
            texts(&[
                "Installing:\n base  noarch  1-1  test  6.0 k\n a-long-name\n   noarch  2:1-1 test 1 k\n\
                 \x20    replacing  gone.noarch 1-1\nRemoving dependent packages:\n other noarch 1 @x 2\n\n",
                "tiny\t2:1.0-1\tnoarch\n\t\t\n",
            ])
        },
    },
    Target {
        name: "sysctl",
        about: "a file of kernel settings",
        run: |bytes| std::str::from_utf8(bytes).is_ok_and(sysctl),
        seeds: || {
            texts(&[
                "# x\nnet.ipv4.ip_forward=0\n-net/ipv4/ip_forward = 1 2\t3\n; y\n",
                "net.ipv4.conf.eth0/1.x = 5\n= =\n-=",
            ])
        },
    },
    Target {
        name: "cron-schedule",
        about: "the time of a cron job",
        run: |bytes| std::str::from_utf8(bytes).is_ok_and(|text| fault_of_schedule(text).is_none()),
        seeds: || {
            texts(&[
                "*/5 0-6/2 1,15 jan-mar mon",
                "@daily",
                "99999999999 * * * *",
                "-/ , * * *",
            ])
        },
    },
];

fn keys(text: &str) -> bool {
    let wanted: Vec<KeyLine> = text.lines().filter_map(KeyLine::parse).take(1).collect();
    for is_exclusive in [false, true] {
        let once = with_keys(text, &wanted, is_exclusive);
        assert_eq!(with_keys(&once, &wanted, is_exclusive), once);
    }
    !wanted.is_empty()
}

fn fstab(text: &str) -> bool {
    let _ = mounted_type(text, "/srv");
    let Some(known) = text.lines().find_map(MountLine::parse) else {
        return false;
    };
    assert_eq!(MountLine::parse(&known.to_text()).as_ref(), Some(&known));
    let once = with_line(text, &known.path, Some(&known));
    assert_eq!(with_line(&once, &known.path, Some(&known)), once);
    assert_eq!(line_of(&once, &known.path), Some(known.clone()));
    assert_eq!(
        line_of(&with_line(&once, &known.path, None), &known.path),
        None
    );
    true
}

fn sysctl(text: &str) -> bool {
    let name = "net.ipv4.ip_forward";
    let Some(key) = SysctlKey::parse(name) else {
        return false;
    };
    let once = with_value(text, &key, name, "1");
    assert_eq!(value_of(&once, &key).as_deref(), Some("1"));
    assert_eq!(with_value(&once, &key, name, "1"), once);
    value_of(text, &key).is_some()
}
