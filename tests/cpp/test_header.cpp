// The C++ layer leaves out nothing: every function of pld.h is called by one of its headers.
#include "test.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace {

std::string text_of(const std::filesystem::path &path) {
  std::ifstream file(path);
  CHECK(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> functions(const std::string &text) {
  static const std::regex name("\\bpld_[a-z0-9_]+\\b");
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), name), end; i != end; ++i) found.insert(i->str());
  return found;
}

}  // namespace

int main() {
  test::deadline();
  const std::filesystem::path include = INCLUDE_DIR;
  // What pld.h exports: names before a parenthesis, outside of comments.
  const std::string header = text_of(include / "pld.h");
  const std::size_t begin = header.find("extern \"C\" {"), end = header.find("}  // extern \"C\"");
  CHECK(begin < end && end < header.size());
  const std::string code =
      std::regex_replace(header.substr(begin, end - begin), std::regex("/\\*[^]*?\\*/"), std::string());
  std::set<std::string> exported;
  static const std::regex declared("\\b(pld_[a-z0-9_]+)\\(");
  for (std::sregex_iterator i(code.begin(), code.end(), declared), last; i != last; ++i) exported.insert((*i)[1]);
  CHECK(exported.size() > 140 && exported.count("pld_launch") == 1);

  // What the headers use, outside of comments.
  std::set<std::string> used;
  std::size_t headers = 0;
  for (const auto &file : std::filesystem::directory_iterator(include / "pld")) {
    headers++;
    used.merge(functions(std::regex_replace(text_of(file.path()), std::regex("//.*"), std::string())));
  }
  CHECK(headers > 20);

  // Without a use, and why.
  const std::set<std::string> left_out = {
      "pld_task_options_init",        // pld_task_defaults of the header does it
      "pld_collective_options_init",  // pld_collective_defaults of the header does it
  };
  for (const std::string &name : exported) {
    const bool is_used = used.count(name) == 1, is_left_out = left_out.count(name) == 1;
    if (is_used == is_left_out)
      test::fail(__FILE__, __LINE__, name + (is_used ? " is left out" : " is used by a header"));
  }
  for (const std::string &name : left_out) CHECK(exported.count(name) == 1);
}
