{
  "targets": [
    {
      "target_name": "shim",
      "sources": [
        "src/addon.cc",
        "src/arguments.cc",
        "src/closing.cc",
        "src/connections.cc",
        "src/descriptor-limit.cc",
        "src/freezing.cc",
        "src/instance.cc",
        "src/listeners.cc",
        "src/message-socket.cc",
        "src/process.cc",
        "src/sockets.cc",
        "src/submissions.cc",
        "src/transport.cc"
      ],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags!": ["-O3", "-fno-omit-frame-pointer"],
      "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-O3", "-fexceptions", "-frtti"],
      "cflags_cc": ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"]
    }
  ]
}
