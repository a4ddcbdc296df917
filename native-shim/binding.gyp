{
  "targets": [
    {
      "target_name": "shim",
      "sources": [
        "src/node/addon.cc",
        "src/node/arguments.cc",
        "src/node/datagram-binding.cc",
        "src/node/file-binding.cc",
        "src/node/instance.cc",
        "src/node/loop-watch.cc",
        "src/node/message-binding.cc",
        "src/node/message-socket.cc",
        "src/node/open-file.cc",
        "src/node/process-binding.cc",
        "src/node/promised-work.cc",
        "src/node/socket-binding.cc",
        "src/node/tls-binding.cc",
        "src/node/tls-values.cc",
        "src/node/transport-binding.cc",
        "src/node/values.cc",
        "src/datagrams/datagram-address.cc",
        "src/datagrams/datagram-sockets.cc",
        "src/transport/closing.cc",
        "src/transport/connections.cc",
        "src/transport/freezing.cc",
        "src/transport/listeners.cc",
        "src/transport/peeking.cc",
        "src/transport/readiness.cc",
        "src/transport/securing.cc",
        "src/transport/socket-stream.cc",
        "src/transport/submissions.cc",
        "src/transport/transport.cc",
        "src/system/descriptor-limit.cc",
        "src/system/message.cc",
        "src/system/output-file.cc",
        "src/system/place.cc",
        "src/system/process.cc",
        "src/system/socket-calls.cc",
        "src/system/sockets.cc",
        "src/tls/certificate.cc",
        "src/tls/client-sessions.cc",
        "src/tls/context.cc",
        "src/tls/errors.cc",
        "src/tls/identities.cc",
        "src/tls/registry.cc",
        "src/tls/session.cc",
        "src/tls/stapling.cc",
        "src/tls/ticket-keys.cc",
        "src/tls/trust-domains.cc"
      ],
      "include_dirs": ["src"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags!": ["-O3", "-fno-omit-frame-pointer"],
      "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-O3", "-fexceptions", "-frtti"],
      "cflags_cc": ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"]
    },
    {
      "target_name": "luajit",
      "type": "none",
      "actions": [
        {
          "action_name": "make",
          "inputs": ["luajit/README.baton"],
          "outputs": ["<(module_root_dir)/build/luajit/src/libluajit.a"],
          "action": ["sh", "src/lua/build-luajit.sh", "<(module_root_dir)/build/luajit"]
        }
      ]
    },
    {
      "target_name": "lua",
      "dependencies": ["luajit"],
      "sources": [
        "src/lua/binding.cc",
        "src/lua/conversions.cc",
        "src/lua/libraries.cc",
        "src/lua/methods.cc",
        "src/lua/objects.cc",
        "src/lua/vm.cc"
      ],
      "include_dirs": ["src", "luajit/src", "<(module_root_dir)/build/luajit/src"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "libraries": ["<(module_root_dir)/build/luajit/src/libluajit.a", "-Wl,--exclude-libs,ALL", "-lm", "-ldl"],
      "cflags!": ["-O3", "-fno-omit-frame-pointer"],
      "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-O3", "-fexceptions", "-frtti"],
      "cflags_cc": ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"]
    }
  ]
}
