//! temp
use ocm_policy_engine::*;
fn main() {
    let module = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let t = std::time::Instant::now();
    let artifact = compile_here(&module, r#"{"prefixes":["prod-"]}"#, &Ceiling::default()).unwrap();
    println!(
        "compiled {} bytes settings {:?} in {:?}",
        artifact.bytes().len(),
        artifact.header().settings,
        t.elapsed()
    );
    println!("{:?}", artifact.header().manifest);
    let engine = Engine::new(&EngineSettings::default()).unwrap();
    let policy = Policy::load(&engine, &artifact, &Ceiling::default()).unwrap();
    let labels: String = (0..7).map(|i| format!(r#""example.com/label-{i}":"value-{i}","#)).collect();
    let mk = |name: &str| {
        let json = format!(
            r#"{{"id":"84bd3dc3","operation":"create","now":1790000000000,"requester":{{"username":"system:serviceaccount:open-cluster-management:agent-registration-bootstrap","uid":"f82ca45b-5d81-4b4b-be44-bc1d99af9983","groups":["system:serviceaccounts","system:serviceaccounts:open-cluster-management","system:authenticated"],"extra":{{"authentication.kubernetes.io/credential-id":["JTI=add664cc-4dee-49bf-8a4a-5f733f9783fe"]}}}},"cluster":{{"name":"{name}","labels":{{{labels}"z":"y"}},"leaseDurationSeconds":60,"clientConfigs":[{{"url":"https://10.0.0.1:6443"}}],"annotations":{{"a.example.com/b":"{}"}}}}}}"#,
            "x".repeat(1100)
        );
        let request: ocm_policy_abi::Request<'static> = serde_json::from_str(Box::leak(json.into_boxed_str())).unwrap();
        Question::new(request).unwrap()
    };
    let (good, bad) = (mk("prod-1"), mk("dev-1"));
    println!("{:?}", policy.decide(&good).outcome);
    println!("{:?}", policy.decide(&bad).outcome);
    println!("request {} bytes", good.text_for(policy.manifest()).unwrap().len());
    let mut times = Vec::new();
    let begun = std::time::Instant::now();
    let n = 100_000;
    for _ in 0..n {
        let t = std::time::Instant::now();
        let a = policy.decide(&good);
        times.push(t.elapsed().as_nanos());
        drop(a);
    }
    let all = begun.elapsed();
    times.sort();
    println!("p50 {} ns p99 {} ns; {:.0}/s", times[n / 2], times[n * 99 / 100], n as f64 / all.as_secs_f64());
    std::thread::scope(|s| {
        let b = std::time::Instant::now();
        let hs: Vec<_> = (0..2)
            .map(|_| {
                s.spawn(|| {
                    for _ in 0..n {
                        policy.decide(&good);
                    }
                })
            })
            .collect();
        for h in hs {
            h.join().unwrap();
        }
        println!("two threads {:.0}/s", 2.0 * n as f64 / b.elapsed().as_secs_f64());
    });
}
