"""One macro that turns a .proto file into a C++ library, with gRPC stubs when asked."""

def tessera_proto_library(name, src, deps = [], grpc = True, visibility = None):
    """Generates `name`, a cc_library with the messages (and services) of `src`.

    Args:
      name: name of the cc_library.
      src: the .proto file, in this package.
      deps: other tessera_proto_library targets that `src` imports.
      grpc: whether `src` holds services.
      visibility: of the library and of `name`_src, the filegroup of proto sources.
    """
    base = native.package_name() + "/" + src[:-len(".proto")]
    stem = src[:-len(".proto")]
    outs = [stem + ".pb.cc", stem + ".pb.h"]
    plugin = ""
    if grpc:
        outs += [stem + ".grpc.pb.cc", stem + ".grpc.pb.h"]
        plugin = "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR)/proto"
    native.filegroup(
        name = name + "_src",
        srcs = [src] + [d + "_src" for d in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_gen",
        srcs = [":" + name + "_src"],
        outs = outs,
        cmd = "/usr/bin/protoc -Iproto -I/usr/include --cpp_out=$(GENDIR)/proto " + plugin + " " + base + ".proto",
    )
    native.cc_library(
        name = name,
        srcs = [o for o in outs if o.endswith(".cc")],
        hdrs = [o for o in outs if o.endswith(".h")],
        copts = ["-w"],
        # The generated headers are included as "tessera/engine/v1/engine.pb.h".
        strip_include_prefix = "/proto",
        deps = deps + [
            "//third_party/system:grpc" if grpc else "//third_party/system:protobuf",
        ],
        visibility = visibility,
    )
