"""A client of Skaffold's event API, with code generated from the `.proto` file: state, services or events as JSON lines."""

import json
import sys
import tempfile

import grpc
from google.protobuf import empty_pb2
from google.protobuf.json_format import MessageToDict
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_tools import protoc

directory, address, wanted = sys.argv[1:]
generated = tempfile.mkdtemp()
well_known = protoc.__file__.rsplit("/", 1)[0] + "/_proto"
ended = protoc.main([
    "protoc", f"-I{directory}", f"-I{well_known}", f"--python_out={generated}", f"--grpc_python_out={generated}",
    "skaffold_v2.proto",
])
assert ended == 0, "the file cannot be compiled"
sys.path.insert(0, generated)
import skaffold_v2_pb2_grpc  # noqa: E402

channel = grpc.insecure_channel(address)
if wanted == "services":
    print(json.dumps(sorted(ProtoReflectionDescriptorDatabase(channel).get_services())))
    sys.exit()
stub = skaffold_v2_pb2_grpc.SkaffoldV2ServiceStub(channel)
if wanted == "state":
    print(json.dumps(MessageToDict(stub.GetState(empty_pb2.Empty(), timeout=20))))
else:
    for event in stub.Events(empty_pb2.Empty(), timeout=60):
        print(json.dumps(MessageToDict(event)), flush=True)
