//! What the template suite cannot show: seeded randomness, certificates that fit together, and odd input to every
//! function.

use portolan_gotmpl::functions::all;
use portolan_gotmpl::{Args, Budget, Ctx, Function, Limits, Param, Seeded, Value};

fn function(name: &str) -> &'static Function {
    all()
        .iter()
        .find(|function| function.name == name)
        .expect("the table names it")
}

fn call(host: &mut Seeded, name: &str, arguments: &[Value]) -> Result<Value, String> {
    let limits = Limits::default();
    let mut ctx = Ctx::new(host, &limits, Budget::default());
    (function(name).call)(&mut ctx, Args::new(arguments)).map_err(|error| error.to_string())
}

fn field(value: &Value, name: &str) -> String {
    let field = match value {
        Value::Object(object) => object.field(name),
        _ => None,
    };
    let field = field.expect("the field is there");
    field.as_str().expect("the field is a string").to_owned()
}

#[test]
fn names_in_the_table_are_unique() {
    let mut names: Vec<&str> = all().iter().map(|function| function.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Equal seeds give equal passwords, identifiers and certificates; the next call gives others.
#[test]
fn randomness_follows_the_seed() {
    let draw = |seed: &str| {
        let mut host = Seeded::new(seed, 1_700_000_000_000_000_000);
        let password = call(&mut host, "randAlphaNum", &[Value::int(16)]).unwrap();
        let again = call(&mut host, "randAlphaNum", &[Value::int(16)]).unwrap();
        let ca = call(&mut host, "genCA", &["ca".into(), Value::int(365)]).unwrap();
        let texts = [password, again].map(|value| value.as_str().unwrap_or_default().to_owned());
        (texts, field(&ca, "Cert"), field(&ca, "Key"))
    };
    let first = draw("release/namespace");
    assert_eq!(first, draw("release/namespace"));
    assert_ne!(first, draw("other/namespace"));
    assert_ne!(first.0[0], first.0[1]);
}

/// A secret that is rendered again for its checksum must be the same secret.
#[test]
fn a_password_has_one_digest_for_each_seed() {
    let digest = |seed: &str, password: &str| {
        let mut host = Seeded::new(seed, 0);
        let mut digest = || call(&mut host, "bcrypt", &[password.into()]).unwrap();
        let (first, again) = (digest(), digest());
        assert_eq!(first.as_str(), again.as_str());
        first.as_str().unwrap_or_default().to_owned()
    };
    assert_ne!(digest("release", "a"), digest("other", "a"));
    assert_ne!(digest("release", "a"), digest("release", "b"));
}

/// What one function makes another reads: the authority of every type of key signs, and its parts can be given back.
#[test]
fn certificates_of_every_kind_of_key_fit_together() {
    let mut host = Seeded::new("certificates", 1_700_000_000_000_000_000);
    for kind in ["rsa", "ecdsa", "ed25519"] {
        let key = call(&mut host, "genPrivateKey", &[kind.into()]).unwrap();
        let ca = call(
            &mut host,
            "genCAWithKey",
            &["ca".into(), Value::int(10), key],
        )
        .unwrap();
        let addresses = Value::list(vec!["10.0.0.1".into(), "::1".into()]);
        let names = Value::list(vec!["a.example".into()]);
        let days = Value::int(10);
        let signed = [Value::str("x"), addresses, names, days, ca.clone()];
        let signed = call(&mut host, "genSignedCert", &signed).unwrap();
        assert!(field(&signed, "Cert").starts_with("-----BEGIN CERTIFICATE-----\n"));
        let encoded = ["Cert", "Key"]
            .map(|name| call(&mut host, "b64enc", &[field(&ca, name).into()]).unwrap());
        let rebuilt = call(&mut host, "buildCustomCert", &encoded).unwrap();
        assert_eq!(field(&rebuilt, "Key"), field(&ca, "Key"));
    }
}

#[test]
fn a_dsa_key_is_refused_for_certificates() {
    let mut host = Seeded::new("dsa", 0);
    let key = call(&mut host, "genPrivateKey", &["dsa".into()]).unwrap();
    let error = call(
        &mut host,
        "genCAWithKey",
        &["ca".into(), Value::int(1), key],
    )
    .unwrap_err();
    assert!(error.contains("unsupported public key type"), "{error}");
}

#[test]
fn results_beyond_the_limit_are_refused() {
    let mut host = Seeded::new("limits", 0);
    let huge = Value::int(1 << 40);
    for (name, arguments) in [
        ("repeat", vec![huge.clone(), "ab".into()]),
        ("indent", vec![huge.clone(), "a\nb".into()]),
        ("until", vec![huge.clone()]),
        ("seq", vec![huge.clone()]),
        ("randBytes", vec![huge.clone()]),
        ("randAlpha", vec![huge]),
    ] {
        let error = call(&mut host, name, &arguments).unwrap_err();
        assert!(error.contains("limit"), "{name}: {error}");
    }
}

/// Functions that take long on purpose: digests against guessing, and RSA keys.
const SLOW: &[&str] = &["bcrypt", "htpasswd", "derivePassword", "genPrivateKey"];

#[test]
fn every_function_survives_odd_input() {
    let texts = [
        "",
        " ",
        "\0",
        "é",
        "日本語",
        "-",
        "..",
        "%",
        "%zz",
        "[",
        "(",
        "(?",
        "\\",
        "\\x{",
        "a{1000}{1000}",
        "{",
        "[[",
        "= ",
        "'''",
        "\"",
        "1.",
        "1e999",
        "0x",
        "9999999999999999999999",
        "2006",
        "Jan",
        "-07:00:00",
        "1h",
        ".s",
        "::",
        "//",
        "http://[",
        "-----BEGIN x-----",
        "a: &a [*a]",
        "!!binary x",
        "\u{fffd}\u{10ffff}",
    ];
    let numbers = [i64::MIN, -1, 0, 1, 7, 63, 65_536];
    let mut host = Seeded::new("odd", i128::MAX / 4_000_000_000);
    let mut state = 1_usize;
    let mut next = |count: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % count
    };
    let deep = (0..5000).fold(Value::Nil, |inner, _| Value::list(vec![inner]));
    for function in all()
        .iter()
        .filter(|function| !SLOW.contains(&function.name))
    {
        for round in 0..60 {
            let signature = function.signature;
            let extra = signature.variadic.into_iter().cycle().take(round % 4);
            let arguments: Vec<Value> = signature
                .params
                .iter()
                .copied()
                .chain(extra)
                .map(|param| match param {
                    Param::Int | Param::Int64 | Param::Uint32 => {
                        Value::int(numbers[next(numbers.len())])
                    }
                    Param::Float => Value::float([f64::NAN, 0.5, -1e300][next(3)]),
                    Param::Bool => Value::Bool(next(2) == 0),
                    Param::Map => {
                        Value::map([(texts[next(texts.len())].into(), deep.clone())].into())
                    }
                    Param::Any if next(4) == 0 => deep.clone(),
                    Param::Any if next(4) == 0 => {
                        Value::float([f64::INFINITY, -0.0, 1e21][next(3)])
                    }
                    Param::List | Param::Object(_) => Value::Nil,
                    _ if next(9) == 0 => Value::str_from_bytes(b"\xff\xc3(\x80"),
                    _ => texts[next(texts.len())].into(),
                })
                .collect();
            let _ = call(&mut host, function.name, &arguments);
        }
    }
}

/// What Helm 3.17.3 prints for them.
#[test]
fn atoi_stops_at_the_ends_of_64_bits() {
    let atoi = |text: &str| {
        let number = call(&mut Seeded::new("s", 0), "atoi", &[text.into()]);
        match number {
            Ok(Value::Int(_, number)) => number,
            other => panic!("a number: {other:?}"),
        }
    };
    assert_eq!(atoi("9223372036854775808"), i64::MAX);
    assert_eq!(atoi("-9223372036854775809"), i64::MIN);
    assert_eq!(atoi("-9223372036854775808"), i64::MIN);
    assert_eq!(atoi("99999999999999999999x"), i64::MAX);
    assert_eq!(atoi("9223372036854775808x"), 0);
    for (text, number) in [
        ("1_0", 0),
        ("+7", 7),
        ("0x10", 0),
        (" 7", 0),
        ("", 0),
        ("-", 0),
    ] {
        assert_eq!(atoi(text), number, "{text}");
    }
}
