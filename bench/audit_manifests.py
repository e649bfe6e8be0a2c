"""Writes manifests of about 2.4 KB each, one in ten with an API version that is gone: audit_manifests.py DIRECTORY COUNT."""

import pathlib
import sys

OLD = ["policy/v1beta1 PodDisruptionBudget", "batch/v1beta1 CronJob", "autoscaling/v2beta2 HorizontalPodAutoscaler"]


def manifest(number):
    """A Deployment, or an object of an old kind, with enough text to weigh what real ones do."""
    api_version, kind = ("apps/v1", "Deployment") if number % 10 else OLD[number // 10 % len(OLD)].split()
    environment = "".join(
        f"        - name: SETTING_{index}\n          value: \"a value that is as long as values are, {number}-{index}\"\n"
        for index in range(22)
    )
    return (
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: app-{number}\n  namespace: team-{number % 50}\n"
        f"  labels:\n    app.kubernetes.io/name: app-{number}\n    app.kubernetes.io/part-of: shop\n"
        "spec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n"
        f"      - name: app\n        image: registry.example.com/shop/app:{number}\n        env:\n{environment}"
    )


def main():
    root, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        path = root / f"team-{number % 50}" / f"app-{number}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(manifest(number))


if __name__ == "__main__":
    main()
