# Leaves llama.cpp's `common` library (chat templates, JSON, an HTTP client) out of the build: `antiphon llm` calls none of it.
# llama-cpp-2 has no feature that turns it off: it takes llama-cpp-sys-2 with its default features.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)
