# Stands in for rosidl_default_generators: Python needs C, and publishers of Fast DDS introspect; the rest takes most of the time.
find_package(rosidl_cmake REQUIRED)
find_package(rosidl_generator_type_description REQUIRED)
find_package(rosidl_generator_c REQUIRED)
find_package(rosidl_typesupport_fastrtps_c REQUIRED)
find_package(rosidl_typesupport_introspection_c REQUIRED)
find_package(rosidl_typesupport_c REQUIRED)
find_package(rosidl_generator_py REQUIRED)

# Message packages that are found later bring the other generators with them.
macro(rosidl_generate_interfaces)
  list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp:|_cpp-")
  _rosidl_generate_interfaces(${ARGN})
  # Their sources share long headers: compiled as one file each, they are done in a third of the time.
  set_target_properties(
    ${PROJECT_NAME}__rosidl_typesupport_fastrtps_c
    ${PROJECT_NAME}__rosidl_typesupport_introspection_c
    ${PROJECT_NAME}__rosidl_typesupport_c
    ${PROJECT_NAME}__rosidl_generator_py
    PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endmacro()
