{
  "targets": [
    {
      "target_name": "shim",
      "sources": [
        "src/node/addon.cc",
        "src/node/arguments.cc",
        "src/node/file-binding.cc",
        "src/node/instance.cc",
        "src/node/message-binding.cc",
        "src/node/message-socket.cc",
        "src/node/open-file.cc",
        "src/node/process-binding.cc",
        "src/node/promised-work.cc",
        "src/node/socket-binding.cc",
        "src/node/transport-binding.cc",
        "src/node/values.cc",
        "src/transport/closing.cc",
        "src/transport/connections.cc",
        "src/transport/freezing.cc",
        "src/transport/listeners.cc",
        "src/transport/peeking.cc",
        "src/transport/readiness.cc",
        "src/transport/socket-stream.cc",
        "src/transport/submissions.cc",
        "src/transport/transport.cc",
        "src/system/descriptor-limit.cc",
        "src/system/message.cc",
        "src/system/output-file.cc",
        "src/system/place.cc",
        "src/system/process.cc",
        "src/system/sockets.cc"
      ],
      "include_dirs": ["src"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags!": ["-O3", "-fno-omit-frame-pointer"],
      "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-O3", "-fexceptions", "-frtti"],
      "cflags_cc": ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"]
    }
  ]
}
